// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/straggler_judge.h"

#include "absl/strings/str_format.h"
#include "common/grouping/stragglers/evidence_text.h"
#include "common/grouping/stragglers/group_efficiency.h"

namespace covey {

void StragglerJudge::Add(NodeId worker, const PaceReport& report) {
  workers_.try_emplace(worker, Judgment{.pace = WorkerPace(options_.pace)})
      .first->second.pace.Add(report);
}

void StragglerJudge::Compare(NodeId member, const GroupInForce& group) {
  Judgment& judgment = workers_.at(member);
  if (!judgment.pace.known()) return;
  const std::vector<const WorkerPace*> paces = KnownPaces(group);
  if (paces.size() < 2) return;
  judgment.slowness = judgment.pace.seconds_per_sample() / MedianPace(paces);
  judgment.slow = judgment.slowness > options_.slow_ratio ? judgment.slow + 1 : 0;
  judgment.recovered = judgment.slowness < options_.recovered_ratio ? judgment.recovered + 1 : 0;
  if (judgment.slow >= options_.slow_reports) judgment.straggler = true;
  if (judgment.recovered >= options_.recovered_reports) judgment.straggler = false;
}

void StragglerJudge::Reset(const GroupInForce& group) {
  for (const GroupMember& member : group.members) {
    const auto known = workers_.find(member.node);
    if (known != workers_.end()) known->second = {.pace = known->second.pace};
  }
}

void StragglerJudge::Forget(NodeId worker) { workers_.erase(worker); }

bool StragglerJudge::HasRecovered(NodeId worker) const {
  return workers_.at(worker).recovered >= options_.recovered_reports;
}

bool StragglerJudge::HasHiccups(NodeId worker) const { return HasHiccups(PaceOf(worker)); }

bool StragglerJudge::HasHiccups(const WorkerPace& pace) const {
  return pace.window() >= options_.hiccup_reports_min &&
         static_cast<double>(pace.hiccups()) >
             options_.hiccups_max * static_cast<double>(pace.window());
}

std::vector<const WorkerPace*> StragglerJudge::KnownPaces(const GroupInForce& group) const {
  std::vector<const WorkerPace*> paces;
  for (const GroupMember& member : group.members) {
    const auto found = workers_.find(member.node);
    if (found != workers_.end() && found->second.pace.known()) paces.push_back(&found->second.pace);
  }
  return paces;
}

std::optional<StragglerJudge::Standing> StragglerJudge::StandingOf(NodeId worker) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return std::nullopt;
  const Judgment& judgment = found->second;
  if (!judgment.pace.known()) return Standing{};
  return Standing{.state = judgment.straggler          ? State::kStraggler
                           : HasHiccups(judgment.pace) ? State::kHiccups
                                                       : State::kSteady,
                  .seconds_per_sample = judgment.pace.seconds_per_sample(),
                  .slowness = judgment.slowness};
}

std::string StragglerJudge::Describe(const GroupMember& member) const {
  const Judgment& judgment = workers_.at(member.node);
  return absl::StrFormat("%s takes %s per sample, %.2fx its group's median", member.name,
                         ShowTime(judgment.pace.seconds_per_sample()), judgment.slowness);
}

}  // namespace covey
