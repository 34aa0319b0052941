// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/missing_ranks.h"

#include <algorithm>
#include <set>

#include "client/cli/run/plan/run_options.h"

namespace covey::cli {

std::vector<uint32_t> MissingRanks(const std::vector<RankInUse>& running,
                                   const std::vector<uint32_t>& restarting, uint32_t wanted) {
  std::set<uint32_t> used;
  uint32_t staying = 0;
  for (const RankInUse& process : running) {
    used.insert(process.rank);
    if (!process.is_draining) ++staying;
  }
  for (const uint32_t rank : restarting) {
    if (used.insert(rank).second) ++staying;
  }
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; staying < std::min(wanted, kProcessesMax); ++rank) {
    if (used.contains(rank)) continue;
    ++staying;
    missing.push_back(rank);
  }
  return missing;
}

}  // namespace covey::cli
