// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"
#include "proto/view.pb.h"
#include "server/replication/chain_place.h"
#include "server/replication/replica_link.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"

namespace covey::server {

// The part of a shard's chain behind one replica: the link to the successor, the records that it
// may still need, and how far the records are durable.
//
// Invariants: 1. durable() never goes back while the replica keeps its content. 2. The log holds
// every record above durable() and every record that the successor needs. 3. A tail keeps no
// records: all that it holds is durable.
//
// Every call that is given what the replica holds ends in Settle, which upholds them and reports a
// successor that has become ready.
//
// Actor-confined. Deterministic.
class Downstream {
 public:
  // What this replica holds; outlives a call only.
  struct Held {
    const ShardContent& content;
    bool has_joined = true;  // this server; so its successor may
  };

  // `place` and `reports` outlive it. `reports`: for the scheduler.
  Downstream(const ChainPlace& place, std::vector<proto::ReplicaReport>& reports,
             const ReplicaLink::Counters& counters)
      : place_(place), reports_(reports), counters_(counters) {}

  // The chain of `place` has changed. Null: this replica is the tail.
  void Follow(absl::Time now, const proto::Replica* successor);
  // The replica has lost its content.
  void Forget();
  // The replica holds new content: a successor starts from it. `is_joining`: the successor, as all
  // behind a joining replica do.
  void StartFrom(absl::Time now, const Held& held, bool is_joining);

  // Sends what may be sent. To be called after a change of the chain.
  void Send(absl::Time now, const Held& held, Outbox& outbox);
  // The record is part of the content. Keeps and sends it, unless this replica is the tail.
  void PassOn(absl::Time now, ShardRecord record, const Held& held, Outbox& outbox);
  // Whether the head's next record should carry a digest of the content, which the replicas behind
  // compare with their own. To be called once per record.
  bool DigestIsDue(const ShardRecord& record);
  // Whether a push that was acknowledged early is in no record yet, as
  // ReplicaLink::Source::early_acks_pending. True: this has changed, and Send is to be called.
  bool SetEarlyAcksPending(bool pending);

  // Precondition: a ReplicateReply. Replies of servers that are not the successor, or of another
  // chain, change nothing.
  void OnReply(absl::Time now, const Message& message, const Held& held, Outbox& outbox);
  // Likewise of a reply with an error: a successor that follows a newer chain counts no longer.
  void OnRefusal(const Message& message);
  void Wake(absl::Time now, const Held& held, Outbox& outbox);
  absl::Time NextWake() const;

  // Null: this replica is the tail.
  const ReplicaLink* link() const { return link_.get(); }
  // Nothing is durable without the successor.
  bool is_required() const { return link_ != nullptr && link_->state().is_required(); }
  // The records up to here are on this replica and on all joined ones behind it.
  uint64_t durable() const { return durable_; }
  // The log holds as many unacknowledged records as it may.
  bool IsFull() const { return log_.IsFull(); }
  // Of records that are kept to be resent.
  size_t kept_bytes() const { return log_.bytes(); }

 private:
  ReplicaLink::Source SourceOf(const Held& held) {
    return {.content = held.content,
            .log = log_,
            .has_joined = held.has_joined,
            .early_acks_pending = early_acks_pending_};
  }
  void LinkTo(absl::Time now, const proto::Replica& successor);
  bool IsFromSuccessor(const Message& message) const;
  // Moves durable() on, trims the log, and reports a successor that has become ready.
  void Settle(absl::Time now, const ShardContent& content);

  // Constant after construction.
  const ChainPlace& place_;
  std::vector<proto::ReplicaReport>& reports_;
  const ReplicaLink::Counters counters_;

  // Owned by the actor's thread.
  RecordLog log_;
  uint64_t durable_ = 0;
  std::unique_ptr<ReplicaLink> link_;
  bool early_acks_pending_ = false;
  // The chain epoch at which the successor was last reported as ready.
  std::optional<Epoch> ready_reported_at_;
  uint64_t records_without_digest_ = 0;
  uint64_t bytes_without_digest_ = 0;
};

}  // namespace covey::server
