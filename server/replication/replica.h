// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"
#include "server/replication/chain_place.h"
#include "server/replication/content_pieces.h"
#include "server/replication/downstream.h"
#include "server/replication/held_records.h"
#include "server/replication/load_source.h"
#include "server/replication/record_observer.h"
#include "server/replication/replica_link.h"
#include "server/replication/replica_state.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_counters.h"
#include "server/replication/shard_record.h"
#include "server/replication/table_rules.h"
#include "server/table/table_budget.h"
#include "server/table/table_memory.h"

namespace covey::server {

// One server's replica of a shard: its content, and the messages from its predecessor. ChainPlace
// says where in the chain it stands, and Downstream sends on what it holds.
//
//     head ──records──▶ … ──records──▶ tail        each applies, passes on, and acknowledges:
//          ◀──held, durable──  ◀──────             durable = it and all joined ones behind hold it
//
// What it holds is one ReplicaState, which draws its states. Content stays through all changes of
// the chain, except where it may hold records that are no part of the history any more: when a
// server is in front that was not there before, records that are not known to be durable may differ
// from that server's.
//
// Invariants: 1. Every durable record is in the content of every joined replica. 2. durable() never
// goes back. 3. Two replicas that hold the same index are equal bit for bit. 4. content() is not
// null in kCatchingUp and kJoined, and null in all other states.
//
// Actor-confined. Deterministic.
class Replica {
 public:
  // What the replicas of one loop share; outlives them.
  struct Environment {
    TableMemory& memory;
    BufferPool& spares;
    ShardCounters& counters;
    RecordObserver* observer = nullptr;  // null = none
    HeldRecords* held = nullptr;         // the same
    TableBudget* tables = nullptr;       // the same
  };

  // The content after a record that is a cut.
  struct TakenCut {
    uint64_t snapshot = 0;  // SnapshotOrder.id, and its epoch
    Epoch epoch;
    ContentCut content;
  };

  Replica(ShardId id, uint64_t generation, const Environment& environment);
  Replica(const Replica&) = delete;

  // Takes the place that the view gives it. Precondition: the view has `self` in the shard's chain,
  // and the same generation.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, const Address& self,
               Outbox& outbox);

  // Fills itself from the initializer, unless it has content or must get it from another server; a
  // shard that begins from a snapshot begins to load.
  // INVALID_ARGUMENT: this server cannot serve the table's definition; says why.
  // RESOURCE_EXHAUSTED: too little memory is free for it, or the budget of tables is too small.
  absl::Status Open(absl::Time now);
  bool may_open() const { return state_ == ReplicaState::kFresh; }
  // From where in the store the shard is to be loaded; nothing once it has been taken.
  std::optional<LoadSource> TakeLoadRequest() { return std::exchange(load_from_, std::nullopt); }
  // The next piece of the content from the store, a ReplicaPiece with checksum; or why there is
  // none. Without effect when the replica does not load any more.
  void Load(absl::Time now, const absl::StatusOr<Message>& piece, Outbox& outbox);
  ReplicaState state() const { return state_; }

  // Precondition: ReplicateRequest, ReplicateReply or ReplicaPiece of this shard.
  void Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // The head's next record: sets its index and applies it. Precondition: version and all else fit;
  // `gradient` is the record's, decoded.
  void Append(absl::Time now, ShardRecord record, const Gradient& gradient, Outbox& outbox);
  // As ReplicaLink::Source::early_acks_pending.
  void SetEarlyAcksPending(absl::Time now, bool pending, Outbox& outbox);

  bool is_head() const { return place_.is_head(); }
  // Epoch of the chain by which it became the head.
  Epoch head_since() const { return place_.head_since(); }
  // Nothing is durable without another server.
  bool has_required_successor() const { return downstream_.is_required(); }
  // Null when there is no successor.
  const ReplicaLink* link() const { return downstream_.link(); }
  // Null unless HasContent(state()).
  const ShardContent* content() const { return content_.get(); }
  ShardContent* content() { return content_.get(); }
  // The records up to here are on this replica and on all joined ones behind it.
  uint64_t durable() const { return downstream_.durable(); }
  // The records that it holds beyond durable(): how far the chain behind it lags.
  uint64_t lag() const { return content_ == nullptr ? 0 : content_->index() - durable(); }
  // The log holds as many unacknowledged records as it may; no more may be appended.
  bool IsFull() const { return downstream_.IsFull(); }
  // Tells the budget of tables how much the content takes. To be called after each call that may
  // change it.
  void ReportTableBytes();
  // RESOURCE_EXHAUSTED: the budget has too few bytes for the rows that an update of these keys
  // makes. Precondition: there is content, and it is sparse.
  absl::Status CheckRoomForRows(std::span<const uint64_t> keys) const;
  // Of records that are kept to be resent.
  size_t kept_bytes() const { return downstream_.kept_bytes(); }
  // For errors: "server-2".
  std::string SuccessorName() const;
  uint64_t generation() const { return generation_; }
  uint64_t chain_epoch() const { return place_.chain_epoch(); }
  // What the scheduler should know, since the last call.
  std::vector<proto::ReplicaReport> TakeReports() { return std::exchange(reports_, {}); }
  // The cuts since the last call, if this replica is the last full member of the chain: what it
  // holds, all of them hold.
  std::vector<TakenCut> TakeCuts() { return std::exchange(cuts_, {}); }

 private:
  // `overtaken`: a server is in front that was not there before.
  void FollowRole(bool joining, bool overtaken);
  void Enter(ReplicaState next);
  void Drop();
  // The content, or what is here of it, is wrong: a joining replica requests it again, a joined one
  // is unfit.
  void RejectContent(const absl::Status& why, ReplicaState next);
  ReplicaState AfterWrongContent() const {
    return IsJoining(state_) ? ReplicaState::kRequesting : ReplicaState::kUnfit;
  }
  // False: it says that it belongs to this chain, and comes from another place. Counted.
  bool IsFromPredecessor(const Message& message);
  void OnRecord(absl::Time now, const Message& message, Outbox& outbox);
  absl::Status ApplyRecord(absl::Time now, ShardRecord record);
  void OnPiece(absl::Time now, const Message& message, Outbox& outbox);
  void ImportPiece(absl::Time now, const Message& message);
  // False: this server cannot hold the shard.
  bool BeginImport(absl::Time now);
  // As of the table's definition, with values of the initializer.
  absl::StatusOr<std::unique_ptr<ShardContent>> MakeContent(absl::Time now);
  void EndImport(absl::Time now);
  // Whether the piece, or one before it, has not come, and is needed.
  bool Lacks(const proto::ReplicaPiece& piece) const;
  void OnReply(absl::Time now, const Message& message, Outbox& outbox);
  // Tells the predecessor what is held and what is durable. `missing` as in ReplicateReply.
  void Acknowledge(bool missing, Outbox& outbox) const;
  // The content holds the record: it goes to the successor.
  void PassOn(absl::Time now, ShardRecord record, Outbox& outbox);
  // Precondition: there is content.
  Downstream::Held held() const { return {.content = *content_, .has_joined = !IsJoining(state_)}; }

  // Constant after construction.
  const ShardId id_;
  const uint64_t generation_;
  const Environment environment_;

  // Owned by the actor's thread.
  std::shared_ptr<const ClusterView> view_;
  ChainPlace place_;
  std::vector<proto::ReplicaReport> reports_;  // not taken yet
  std::vector<TakenCut> cuts_;                 // not taken yet
  Downstream downstream_;

  ReplicaState state_ = ReplicaState::kFresh;
  TableBudget::Share table_bytes_;
  std::unique_ptr<ShardContent> content_;
  std::unique_ptr<ContentImport> import_;  // kImporting and kLoading
  std::optional<LoadSource> load_from_;    // not taken yet
  absl::Status import_failure_;            // why the newest import could not begin; logged once
  absl::Time announce_at_ = absl::InfiniteFuture();
};

}  // namespace covey::server
