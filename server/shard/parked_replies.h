// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/contract/read_gate.h"
#include "common/net/message.h"
#include "common/vectors/vector_function.h"
#include "server/key_lists/listed_keys.h"
#include "server/replication/push_history.h"

namespace covey::server {

// A reply that is not complete yet, or waits until the shard is fresh enough.
struct PendingReply {
  // The request that it belongs to: a retry repeats all three.
  NodeId node;
  Incarnation incarnation;
  uint64_t request_id = 0;
  Epoch view;  // that its sender knew

  // As made by BeginReply, until it is complete.
  Message reply;
  // The bound that the reader asked for, and its meaning under the contract in force.
  proto::ReadBound bound;
  ReadRequirement requirement;
  absl::Time deadline;
  bool wants_values = true;
  bool wants_slots = false;  // of the optimizer, after the values; of a pull
  // Of a sparse table: of the rows that are wanted.
  std::shared_ptr<const ListedKeys> keys;
  std::vector<VectorQuery> queries;  // of a table of vectors; answered in place of values
  // Of a pull of a sparse table: a piece of all its rows is wanted, in place of values.
  std::optional<proto::RowScan> scan = {};

  // For a push only.
  struct Push {
    PushKey key;
    Version base_version;
    bool duplicate = false;
    bool initial_values = false;  // in place of a gradient
  };
  std::optional<Push> push;
};

// Of its keys and queries.
size_t BytesOf(const PendingReply& reply);

// For a push or a pull of which only the request is known.
PendingReply BeginPendingReply(absl::Time now, const Message& request,
                               const proto::ReadBound& bound, uint32_t deadline_ms);

// Replies that wait for the shard to be fresh enough, in order of arrival. At most
// kParkedPerShardMax.
//
// Actor-confined. Deterministic.
class ParkedReplies {
 public:
  // A retry replaces the reply that waits for the same request. False when full; the reply is
  // untouched then.
  bool Park(PendingReply& reply);

  // Removes the replies that `wanted` accepts and gives them to `take`, in order of arrival. `take`
  // must not park.
  void Take(absl::FunctionRef<bool(const PendingReply&)> wanted,
            absl::FunctionRef<void(PendingReply&)> take);

  void ForEach(absl::FunctionRef<void(PendingReply&)> change) {
    for (PendingReply& reply : replies_) change(reply);
  }

  // Earliest deadline; InfiniteFuture() when nothing waits.
  absl::Time next_deadline() const { return next_deadline_; }
  size_t size() const { return replies_.size(); }
  size_t bytes() const;

 private:
  std::vector<PendingReply> replies_;
  absl::Time next_deadline_ = absl::InfiniteFuture();
};

}  // namespace covey::server
