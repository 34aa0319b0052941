// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/share_shift.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grouping/stragglers/evidence_text.h"
#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {
namespace {

// Each member's fraction of the group's samples.
std::vector<double> Fractions(const std::vector<uint32_t>& shares, size_t members) {
  std::vector<double> fractions(members, 1.0 / static_cast<double>(members));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (shares.size() != members || sum <= 0) return fractions;
  for (size_t i = 0; i < members; ++i) fractions[i] = shares[i] / sum;
  return fractions;
}

}  // namespace

std::optional<StragglerAction> ShiftShares(const GroupInForce& group, const StragglerJudge& judge,
                                           const StragglerOptions& options) {
  StragglerAction action{.kind = StragglerAction::Kind::kShiftSamples, .group = group.id};
  bool straggler = false;
  bool all_recovered = true;
  for (const GroupMember& member : group.members) {
    straggler = straggler || judge.IsStraggler(member.node);
    all_recovered = all_recovered && judge.HasRecovered(member.node);
  }
  if (group.shares.empty() && !straggler) return std::nullopt;
  if (!group.shares.empty() && all_recovered) {
    action.evidence =
        absl::StrCat("every member is within ", options.recovered_ratio, "x of the median again");
    return action;
  }

  const std::vector<const WorkerPace*> paces = judge.KnownPaces(group);
  action.shares = SharesBySpeed(paces, options.share_min);
  const std::vector<double> wanted = Fractions(action.shares, paces.size());
  const std::vector<double> current = Fractions(group.shares, paces.size());
  for (size_t i = 0; i < paces.size(); ++i) {
    // The others' shares follow from those of present and past stragglers.
    const bool reduced = current[i] * static_cast<double>(paces.size()) * options.slow_ratio < 1;
    if (!judge.IsStraggler(group.members[i].node) && !reduced) continue;
    const double change = std::abs(wanted[i] / current[i] - 1);
    const double noise = options.share_errors * paces[i]->error();
    if (change <= std::max(options.share_change_min, noise)) continue;
    action.evidence =
        absl::StrCat(judge.Describe(group.members[i]), "; its share is ", ShowPercent(current[i]),
                     " of the group's samples, by speed ", ShowPercent(wanted[i]));
    return action;
  }
  return std::nullopt;
}

}  // namespace covey
