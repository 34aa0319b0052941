// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/vectors/vector_function.h"

namespace covey::client {

// How far a shard has come. Versions count from the beginning of a generation; a new one begins
// when all replicas of a shard were lost.
struct ShardVersion {
  uint64_t generation = 0;
  Version version;

  friend auto operator<=>(const ShardVersion&, const ShardVersion&) = default;
};

// The result of an operation, over all its shards.
struct OperationResult {
  absl::Status status;
  // Lowest version among the shards.
  Version version;
  // Of an operation on rows: of each shard of the table.
  std::vector<ShardVersion> shard_versions = {};
  // Most updates by others between the values a gradient was computed on and its application.
  uint64_t staleness = 0;
  // Longest time since a shard's last update.
  absl::Duration age = absl::ZeroDuration();
  // Of a pull: most training examples behind a shard.
  uint64_t samples = 0;
  // Some shard already had the push (a retry crossed its reply).
  bool duplicate = false;
  // Some shard found the push too stale for the table's contract, and did not apply it.
  bool discarded = false;
  // Of a push to a sparse table: rows that were not made, because the table holds as many as it may
  // (TableSpec.sparse.rows_max); of all pushes of the same update. Their gradients are lost; all
  // other rows are updated. `status` is FAILED_PRECONDITION then, unless the table has `when_full`
  // SKIP or EVICT. A push that waits in a buffer is answered before that is known.
  uint64_t rows_refused = 0;
  // Every shard holds the push as durably as the table requires. False: every shard has received
  // it, and this client keeps the part that is not durable yet and resends it to a server that
  // takes over (ParameterClient::Flush waits for that). Undefined when `status` is an error.
  bool durable = false;
  // Of queries: one answer for each, in their order.
  std::vector<VectorAnswer> answers = {};
};

}  // namespace covey::client
