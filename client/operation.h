#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/tensor/wire_format.h"

namespace covey::client {

// How fresh an answer must be, beyond what the table's contract asks. Zero = no demand.
struct ReadBound {
  // Steps that the reader's group has finished; the contract turns it into a bound.
  Step step;
  GroupId group;
  Version min_version;
  // Replaces the contract's staleness: every live group at `step` - max_staleness.
  std::optional<uint64_t> max_staleness;
  // Oldest time since a shard's last update.
  absl::Duration max_age = absl::ZeroDuration();
};

// Who a push counts for when it is a group's: each shard applies one update per group and step,
// whichever member sends it.
struct GroupIdentity {
  GroupId group;
  uint64_t generation = 0;
  Step step;
};

// What an operation brought back, over all its shards.
struct OperationResult {
  absl::Status status;
  // Lowest version among the shards.
  Version version;
  // Most updates by others between the values a gradient was computed on and its application.
  uint64_t staleness = 0;
  // Longest time since a shard's last update.
  absl::Duration age = absl::ZeroDuration();
  // Some shard had the push before (a retry crossed its answer).
  bool duplicate = false;
  // Some shard found the push too stale for the table's contract, and did not apply it.
  bool discarded = false;
  // Every shard holds the push as durably as the table asks. False: every shard has received it,
  // and this client keeps what is not durable yet and sends it again to a server that takes over
  // (ClientMachine::Flush waits for that). Without meaning when `status` is an error.
  bool durable = false;
};

// A push, a pull, or both in one round trip, on consecutive whole shards of one table.
//
// Memory: `gradient` stays valid and unchanged, `values` and `residual` valid and untouched, until
// `done` is called; it always is, once, at the latest soon after the deadline.
struct Operation {
  TableId table;
  ShardIndex first_shard;
  // 0 = all shards from first_shard on.
  uint32_t shard_count = 0;
  // Sum over `samples` examples of per-example gradients, for exactly these shards. Empty = no
  // push.
  std::span<const float> gradient;
  // Where the values go. Empty = no pull.
  std::span<float> values;
  uint64_t samples = 1;
  // How the gradient travels. Other than float32 it is encoded once per shard, when that shard's
  // request first leaves; a retry sends the same bytes.
  WireFormat format = WireFormat::kFloat32;
  // Error feedback, with a format that loses: what the last push of these shards lost, added to
  // this one; then holds what this one loses. As long as the gradient; empty = what is lost is
  // lost. Of a failed operation, each shard's part holds the one or the other.
  std::span<float> residual;
  // Absent = a push of this client.
  std::optional<GroupIdentity> group;
  ReadBound read;
  absl::Time deadline = absl::InfiniteFuture();
  // Runs on the loop.
  std::function<void(absl::Time, const OperationResult&, Outbox&)> done;
};

}  // namespace covey::client
