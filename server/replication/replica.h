#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"
#include "server/replication/content_pieces.h"
#include "server/replication/replica_link.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_counters.h"
#include "server/replication/shard_record.h"
#include "server/table/spare_buffers.h"
#include "server/table/table_spec.h"

namespace covey::server {

// One server's place in the chain of a shard: its content, what comes from the server in front, and
// the link to the one behind.
//
//     head ──records──▶ … ──records──▶ tail        each applies, passes on, and acknowledges:
//          ◀──held, durable──  ◀──────             durable = it and all joined ones behind hold it
//
//                 initializer, when it has joined from the start
//   without content ──────────────────────────────────────────▶ with content ──▶ head, or not,
//        │   ▲                                                      ▲    │       as the view says
//        │   └── wrong digest or record: UNFIT ─────────────────────│────┘
//        └── joining: asks the one in front, gets pieces ───────────┘
//
// Content stays over all changes of the chain, except where it may hold records that are not part
// of the history any more: when somebody is in front now who was not before, a tail that is not
// known to be durable may be another one than there.
//
// The fence: a message of another chain epoch is never acted upon. Of a higher one: dropped, the
// view is on its way. Of a lower one: refused with ABORTED; who is refused counts nothing durable
// until it has a newer view.
//
// Invariants: 1. All that was durable is in the content of every joined replica. 2. durable() never
// goes back. 3. Two replicas that hold the same index are equal bit for bit.
//
// Actor-confined. Deterministic.
class Replica {
 public:
  // What it shares with the others of its loop; outlives it.
  struct Environment {
    SpareBuffers& spares;
    ShardCounters& counters;
  };

  Replica(ShardId id, uint64_t generation, const Environment& environment)
      : id_(id), generation_(generation), environment_(environment) {}

  // Takes its place as the view says. Precondition: the view has `self` in the shard's chain, and
  // the same generation.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, const Address& self,
               Outbox& outbox);

  // Fills itself from the initializer, unless it has content or must get it from another server.
  // INVALID_ARGUMENT: this server cannot serve the table's definition; says why.
  absl::Status Open(absl::Time now);
  bool may_open() const { return content_ == nullptr && !was_joining_ && !unfit_; }

  // Precondition: ReplicateRequest, ReplicateReply or ReplicaPiece of this shard.
  void Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // The head's next record: sets its index and applies it. Precondition: version and all else fit;
  // `gradient` is the record's, decoded.
  void Append(absl::Time now, ShardRecord record, std::span<const float> gradient, Outbox& outbox);
  // As ReplicaLink::Source::keeps_promises.
  void SetKeepsPromises(absl::Time now, bool keeps_promises, Outbox& outbox);

  bool is_head() const { return position_ == 0; }
  // Epoch of the chain by which it became the head.
  Epoch head_since() const { return head_since_; }
  // Nothing is durable without another server.
  bool has_company() const { return link_ != nullptr && link_->counts(); }
  // Null: it has none yet.
  const ShardContent* content() const { return content_.get(); }
  ShardContent* content() { return content_.get(); }
  // The records up to here are on all joined replicas from this one on.
  uint64_t durable() const { return durable_; }
  // So many records wait for their acknowledgement that no more may be made.
  bool IsFull() const { return log_.IsFull(); }
  // Of records that are kept to be sent again.
  size_t kept_bytes() const { return log_.bytes(); }
  // For errors: "server-2".
  std::string SuccessorName() const;
  uint64_t generation() const { return generation_; }
  uint64_t chain_epoch() const { return chain_.chain_epoch(); }
  // What the scheduler should know, since the last call.
  std::vector<proto::ReplicaReport> TakeReports() { return std::exchange(reports_, {}); }

 private:
  void FollowChain(absl::Time now, const proto::Shard& shard, const Address& self);
  void LinkTo(absl::Time now, std::optional<proto::Replica> successor);
  void Drop();
  void DeclareUnfit(const absl::Status& why);
  void ReceiveRecord(absl::Time now, const Message& message, Outbox& outbox);
  absl::Status ApplyRecord(absl::Time now, ShardRecord record);
  void ReceivePiece(absl::Time now, const Message& message, Outbox& outbox);
  // False: this server cannot hold the shard.
  bool BeginImport(absl::Time now);
  void EndImport(absl::Time now);
  // Whether the piece, or one before it, has not come, and is needed.
  bool Lacks(const proto::ReplicaPiece& piece) const;
  void ReceiveReply(absl::Time now, const Message& message, Outbox& outbox);
  // Into the log, and on to the successor.
  void PassOn(absl::Time now, ShardRecord record, Outbox& outbox);
  // To the server in front: what is held and what is durable.
  // `missing` as in ReplicateReply.
  void Answer(bool missing, Outbox& outbox) const;
  // Whether a message is of the chain as it is known here. One of a newer chain is dropped, for the
  // view is on its way; one of an older chain is refused.
  bool IsOfThisChain(const Message& message, const proto::ChainPosition& chain,
                     Outbox& outbox) const;
  void Refuse(const Message& message, Outbox& outbox) const;
  // What is durable now, what need not be kept, and what the scheduler should know.
  void Settle(absl::Time now);
  void Report(proto::ReplicaReport::Kind kind, NodeId node, const std::string& reason);
  bool DigestIsDue(const ShardRecord& record);
  ReplicaLink::Source source() {
    return {.content = *content_,
            .log = log_,
            .has_joined = !joining_,
            .keeps_promises = keeps_promises_};
  }

  // Constant after construction.
  const ShardId id_;
  const uint64_t generation_;
  const Environment environment_;

  // Owned by the actor's thread.
  std::shared_ptr<const ClusterView> view_;
  Address self_;
  proto::ChainPosition chain_;
  int position_ = 0;
  Epoch head_since_;
  bool joining_ = false;
  absl::btree_set<NodeId> in_front_;
  Address predecessor_;

  std::unique_ptr<ShardContent> content_;
  std::unique_ptr<ContentImport> import_;
  bool was_joining_ = false;  // ever: its content comes from others
  bool unfit_ = false;        // joined, and its content was dropped
  RecordLog log_;
  uint64_t durable_ = 0;
  std::unique_ptr<ReplicaLink> link_;
  bool keeps_promises_ = true;
  bool told_ready_ = false;  // of the successor, at this chain epoch
  uint64_t records_without_digest_ = 0;
  uint64_t bytes_without_digest_ = 0;
  absl::Time announce_at_ = absl::InfiniteFuture();
  std::vector<proto::ReplicaReport> reports_;  // not taken yet
};

}  // namespace covey::server
