// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey::client {

// How fresh the values of a read must be, beyond the table's contract. Zero = no requirement.
struct ReadBound {
  // Steps that the reader's group has finished; the contract derives a bound from it.
  Step step;
  GroupId group;
  Version min_version;
  // Replaces the contract's staleness: every live group at `step` - max_staleness.
  std::optional<uint64_t> max_staleness;
  // Longest time since a shard's last update.
  absl::Duration max_age = absl::ZeroDuration();
};

}  // namespace covey::client
