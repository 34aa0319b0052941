// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/slowest_removal.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/grouping/stragglers/evidence_text.h"
#include "common/grouping/stragglers/partial_reduce.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

std::optional<StragglerAction> RemoveSlowest(const GroupInForce& group,
                                             const GroupEfficiency& efficiency,
                                             const std::vector<GroupInForce>& groups,
                                             const StragglerJudge& judge,
                                             const StragglerOptions& options) {
  const GroupMember& slowest = group.members[efficiency.slowest];
  const std::string evidence =
      absl::StrCat("in spite of its share the group waits for ", slowest.name, " (",
                   ShowTime(efficiency.slowest_step_seconds), " per step) and makes ",
                   ShowPercent(efficiency.part), " of the summed speed of its members, ",
                   absl::StrFormat("%.1fx", efficiency.gain_without_slowest), " without it");
  const bool may_shrink = group.members.size() > options.group_members_min &&
                          efficiency.gain_without_slowest >= options.gain_min;

  if (may_shrink && options.highest >= StragglerRung::kRegroup) {
    const GroupInForce* best = nullptr;
    double best_step = 0;
    for (const GroupInForce& other : groups) {
      const std::vector<const WorkerPace*> paces = judge.KnownPaces(other);
      if (other.id == group.id || !HasRoom(other) || paces.empty() ||
          paces.size() < other.members.size())
        continue;
      const double step = EfficiencyOf(paces).slowest_step_seconds;
      if (efficiency.slowest_step_seconds > options.fit_max * step) continue;
      if (best == nullptr || step < best_step) {
        best = &other;
        best_step = step;
      }
    }
    if (best != nullptr) {
      return StragglerAction{.kind = StragglerAction::Kind::kRegroup,
                             .group = group.id,
                             .member = slowest.node,
                             .to = best->id,
                             .evidence = absl::StrCat(evidence, "; group ", best->id.value(),
                                                      " takes ", ShowTime(best_step), " per step")};
    }
  }
  if (may_shrink && options.highest >= StragglerRung::kEvict) {
    return StragglerAction{.kind = StragglerAction::Kind::kEvict,
                           .group = group.id,
                           .member = slowest.node,
                           .evidence = absl::StrCat(evidence, "; no other group is as slow")};
  }
  if (options.highest >= StragglerRung::kPartial && group.minimum_members == 0) {
    return PartialReduce(group, 1, evidence, judge, options);
  }
  return std::nullopt;
}

}  // namespace covey
