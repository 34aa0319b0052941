// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/replication.pb.h"
#include "proto/scheduler.pb.h"
#include "proto/view.pb.h"

namespace covey::server {

// Whether `self` has the last full replica of the shard: all that it holds, the other full ones
// hold, too. Pure.
bool HasLastFull(const proto::Shard& shard, const Address& self);

// A server's place in the chain of a shard, as the newest view gives it, and the fence between
// chains of different epochs.
//
// The fence: a message of another chain epoch is never acted upon. A message of a higher epoch is
// dropped, because the view is in flight. A message of a lower epoch is refused with ABORTED; the
// sender then counts nothing as durable until it has a newer view.
//
// Actor-confined. Deterministic.
class ChainPlace {
 public:
  ChainPlace(ShardId id, uint64_t generation) : id_(id), generation_(generation) {}

  // Whether Follow has been called with this chain epoch last.
  bool Follows(const proto::Shard& shard) const;
  // Takes the place of `self`. True: a server is in front that was not there before. Precondition:
  // `self` is in the chain.
  bool Follow(const proto::Shard& shard, const Address& self);

  // Precondition for all below: Follow has been called.
  int position() const { return position_; }  // 0 = head
  bool is_head() const { return position_ == 0; }
  // Epoch of the chain by which it became the head.
  Epoch head_since() const { return head_since_; }
  // Names the shard, its generation and the chain epoch.
  const proto::ChainPosition& chain() const { return chain_; }
  uint64_t chain_epoch() const { return chain_.chain_epoch(); }
  const Address& self() const { return self_; }
  // Precondition: !is_head().
  const Address& predecessor() const { return predecessor_; }

  // The fence: whether a message that names `chain` may be acted upon.
  bool Admits(const Message& message, const proto::ChainPosition& chain, Outbox& outbox) const;

  // What the scheduler is told about the replica on `node`.
  proto::ReplicaReport MakeReport(proto::ReplicaReport::Kind kind, NodeId node,
                                  absl::string_view reason) const;

 private:
  void Refuse(const Message& message, Outbox& outbox) const;

  // Constant after construction.
  const ShardId id_;
  const uint64_t generation_;

  // Owned by the actor's thread.
  proto::ChainPosition chain_;
  Address self_;
  int position_ = -1;
  Epoch head_since_;
  absl::btree_set<NodeId> in_front_;
  Address predecessor_;
};

}  // namespace covey::server
