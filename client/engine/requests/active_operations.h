// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/engine/operation.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/tensor/wire_format.h"
#include "proto/view.pb.h"

namespace covey::client {

// The consecutive shards of a table that an operation covers.
struct ShardRange {
  uint32_t first = 0;
  uint32_t count = 0;
  // Of the table; where the operation has a batch, its rows count from 0.
  uint64_t first_element = 0;
  uint64_t elements = 0;
  // Of a sparse table: how its rows travel.
  WireFormat row_type = WireFormat::kFloat32;
};

// INVALID_ARGUMENT: the table has no such shards, the spans do not fit them or the batch, a shard
// gets more keys than a message holds, the push has no samples, or the table's rows are of a type
// that this program does not know.
absl::StatusOr<ShardRange> ShardsOf(const Operation& operation, const proto::Table& table);

// An operation that has not ended. Its requests have consecutive ids.
struct ActiveOperation {
  uint64_t number = 0;
  Operation operation;
  // In force: that of the operation, or a later one (RequestEngine::SetGroupDeadlineFloor).
  absl::Time deadline;
  // The whole gradient, unless it is in factors; the frame of each request is a slice of it.
  Buffer gradient;
  // The same of Operation.initial_state.
  Buffer slots;
  uint64_t first_request = 0;
  size_t unanswered = 0;
  // Pushes that were received, and for whose durability the operation still waits.
  size_t undurable = 0;
  absl::btree_set<Address> sent_to;
  // To queries: those of each shard, until all have answered.
  std::vector<std::vector<VectorAnswer>> shard_answers;
  WireFormat row_type = WireFormat::kFloat32;  // as ShardRange
  OperationResult result;
  bool is_retiring = false;  // it is in ActiveOperations::retiring_

  // The answers of the table. Precondition: all shards have answered.
  std::vector<VectorAnswer> JoinedAnswers() const;

  bool over() const { return unanswered == 0 && undurable == 0; }
  bool shares_gradient() const { return !operation.gradient_memory.empty(); }
  // Whether the caller may have its memory back. Shared memory is never waited for.
  bool FramesReleased() const {
    return (gradient.empty() || shares_gradient() || gradient.IsUnique()) &&
           (slots.empty() || slots.IsUnique());
  }
};

// The operations of a client, from their start until `done` was called. An operation ends when all
// its requests have ended and no frame of its gradient is referenced any more, so that the caller
// gets its memory back; frames of shared memory are not waited for. Actor-confined. Deterministic.
class ActiveOperations {
 public:
  // The requests get the ids from `first_request` on, one for each shard.
  ActiveOperation& Add(Operation operation, const ShardRange& shards, uint64_t first_request);
  // Called when one more request has ended or become durable. True: the operation waits only for
  // its frames, and Retire is due.
  bool MarkIfOver(ActiveOperation& operation);
  // Calls `done` of each operation that has ended and whose frames have been released. `done` may
  // start operations.
  void Retire(absl::Time now, Outbox& outbox);
  // Whether ended operations wait for their frames; Retire is due again soon.
  bool has_retiring() const { return !retiring_.empty(); }

  // By number, oldest first.
  const std::map<uint64_t, std::unique_ptr<ActiveOperation>>& all() const { return active_; }
  // The number of the operation that starts next.
  uint64_t next_number() const { return next_number_; }

 private:
  std::map<uint64_t, std::unique_ptr<ActiveOperation>> active_;
  std::vector<uint64_t> retiring_;
  uint64_t next_number_ = 1;
};

}  // namespace covey::client
