// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/row_lives.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace covey::sim {

std::string WhyRowIsWrong(const CountingPlan& plan, const CountingLedger& ledger,
                          const ShardHistory& history, std::span<const float> row,
                          const std::set<uint64_t>& pushed) {
  uint64_t first_held = std::numeric_limits<uint64_t>::max();
  uint64_t newest_missing = 0;
  std::set<uint64_t> missing;  // versions
  for (uint64_t slot = 0; slot < row.size(); ++slot) {
    const bool is_held = row[slot] != 0;
    if (is_held && (!pushed.contains(slot) || !ledger.IsOnce(history.shard, row[slot]))) {
      return absl::StrCat("it holds ", row[slot], " in column ", slot,
                          pushed.contains(slot) ? ": not applied exactly once"
                                                : ", which no push with its key owns");
    }
    const uint64_t version = pushed.contains(slot) ? ledger.AppliedVersion(history, slot) : 0;
    if (version == 0) continue;
    if (is_held) {
      first_held = std::min(first_held, version);
    } else {
      missing.insert(version);
      newest_missing = std::max(newest_missing, version);
    }
  }
  if (newest_missing >= first_held) {
    return absl::StrCat("it holds the push of version ", first_held, ", and lacks that of version ",
                        newest_missing);
  }
  const bool by_count_only =
      plan.life_cycle.rows_max() == 0 && plan.life_cycle.admit_probability() == 0;
  if (by_count_only && missing.size() >= std::max<uint64_t>(plan.life_cycle.admit_after(), 1)) {
    return absl::StrCat("it lacks the pushes of ", missing.size(),
                        " versions, and is to be made by update ", plan.life_cycle.admit_after());
  }
  return "";
}

}  // namespace covey::sim
