// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/contract/contract.h"
#include "common/optimizer/optimizer.h"
#include "common/recording/recording.h"
#include "common/store/folder.h"

namespace covey::server {

// A change of the recorded run, to see what its gradients would have done.
struct WhatIf {
  std::optional<OptimizerConfig> optimizer;
  // Replaces the base of the learning rate's schedule.
  std::optional<double> base_rate;
  // The same arrivals under another gate: async or buffered, for a run in which each push was an
  // update of its own. Workers would have waited elsewhere, and so would have pushed otherwise.
  std::optional<Contract> contract;

  bool changes_something() const { return optimizer || base_rate || contract; }
};

// The records among which a replay first left the recorded history.
struct ReplayDifference {
  // The newest record before them with the recorded digest; 0 = the first content.
  uint64_t after = 0;
  // The first record whose digest differs.
  uint64_t at = 0;
};

// A shard that has gone through its recorded history again.
struct ReplayedShard {
  uint64_t records = 0;
  uint64_t pushes = 0;
  // Digests that were equal.
  uint64_t digests = 0;
  // The replay ended there. Nothing: all digests were equal.
  std::optional<ReplayDifference> difference;
  // Updates that were applied.
  uint64_t updates = 0;
  // After the last record that was applied.
  Buffer values;
};

// Applies a shard's recorded history to its first content, without a cluster, with the code of
// servers; so it leaves the bits that it left then. Checks each digest, and ends at the first that
// differs. With a WhatIf it checks no digest; adjustments of rate and momentum stay as recorded.
//
// `progress` is called after each record; a status that is not OK ends the replay, and is its
// result. Blocks. Memory: the shard, and one gradient.
//
// `store` holds the snapshots from which shards began; null = there are none.
//
// FAILED_PRECONDITION: the history does not begin with the first record; or the shard began from a
// snapshot, and there is no store; or WhatIf has another optimizer, and the shard began with the
// state of the recorded one. INVALID_ARGUMENT: this program cannot serve such a table; says why.
// NOT_FOUND: no gradients were recorded, or the store has no such snapshot. DATA_LOSS: as
// Recording::ReadGradient and LoadContent. With a contract,
// UNIMPLEMENTED: another one than WhatIf names, or an update of several pushes or with an adjusted
// rate.
absl::StatusOr<ReplayedShard> ReplayShard(const Recording& recording, const ShardHistory& history,
                                          const WhatIf& what_if, Folder* store,
                                          absl::FunctionRef<absl::Status()> progress);

}  // namespace covey::server
