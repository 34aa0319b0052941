// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/partial_reduce.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {
namespace {

constexpr absl::Duration kGraceMin = absl::Milliseconds(1);
constexpr absl::Duration kGraceMax = absl::Seconds(10);

}  // namespace

std::optional<StragglerAction> StopWaiting(const GroupInForce& group, const StragglerJudge& judge,
                                           const StragglerOptions& options) {
  if (options.highest < StragglerRung::kPartial) return std::nullopt;
  std::vector<std::string> late;
  for (const GroupMember& member : group.members) {
    if (!judge.HasHiccups(member.node)) continue;
    const WorkerPace& pace = judge.PaceOf(member.node);
    late.push_back(absl::StrCat(member.name, " was late in ", pace.hiccups(), " of ", pace.window(),
                                " reports, more than ", options.pace.hiccup_ratio,
                                "x its usual time"));
  }
  if (late.empty()) return std::nullopt;
  StragglerAction action =
      PartialReduce(group, late.size(), absl::StrJoin(late, "; "), judge, options);
  // A group that waits for fewer members needs no further change.
  if (group.minimum_members != 0 && group.minimum_members <= action.minimum_members) {
    return std::nullopt;
  }
  return action;
}

std::optional<StragglerAction> WaitAgain(const GroupInForce& group, size_t good_reports,
                                         const StragglerJudge& judge,
                                         const StragglerOptions& options) {
  if (options.highest < StragglerRung::kPartial || group.minimum_members == 0 ||
      good_reports < options.recovered_reports * group.members.size()) {
    return std::nullopt;
  }
  for (const GroupMember& member : group.members) {
    const WorkerPace& pace = judge.PaceOf(member.node);
    // A worker that computes in time but steps aside is late for another reason.
    if (pace.hiccups() > 0 || pace.window() < options.hiccup_reports_min ||
        pace.aside() > options.hiccups_max) {
      return std::nullopt;
    }
  }
  return StragglerAction{.kind = StragglerAction::Kind::kPartialReduce,
                         .group = group.id,
                         .evidence = "nobody was late for a whole window of reports"};
}

StragglerAction PartialReduce(const GroupInForce& group, size_t late, std::string evidence,
                              const StragglerJudge& judge, const StragglerOptions& options) {
  const size_t members = group.members.size();
  const size_t half = (members + 1) / 2;
  const size_t automatic = std::max(members - std::min(members, late), half);
  const size_t wanted = options.partial_minimum == 0 ? automatic : options.partial_minimum;
  const absl::Duration automatic_grace = std::clamp(
      absl::Seconds(MedianStepSeconds(judge.KnownPaces(group)) / 2), kGraceMin, kGraceMax);
  return {.kind = StragglerAction::Kind::kPartialReduce,
          .group = group.id,
          .minimum_members = static_cast<uint32_t>(std::clamp<size_t>(wanted, 1, members - 1)),
          .grace = options.partial_grace > absl::ZeroDuration() ? options.partial_grace
                                                                : automatic_grace,
          .evidence = std::move(evidence)};
}

}  // namespace covey
