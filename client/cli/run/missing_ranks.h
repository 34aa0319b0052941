// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace covey::cli {

// A running process of one role.
struct RankInUse {
  uint32_t rank;
  // It will leave, so that it does not count.
  bool is_draining;
};

// The ranks of the processes to start so that `wanted` of a role, kProcessesMax at most, stay: the
// lowest that are free. `restarting`: ranks that will be restarted anyway. Pure.
std::vector<uint32_t> MissingRanks(const std::vector<RankInUse>& running,
                                   const std::vector<uint32_t>& restarting, uint32_t wanted);

}  // namespace covey::cli
