// SPDX-License-Identifier: Apache-2.0
#include "common/contract/read_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/random.h"

namespace covey {
namespace {

constexpr size_t kGroupsNamedMax = 4;

bool IsBehind(const LiveGroup& group, Step required, const Freshness& freshness) {
  const Step clock = freshness.clocks.StepOf(group.id);
  if (group.lost_after && clock <= *group.lost_after) return false;
  return group.first_step <= required && clock < required;
}

bool LacksRound(Step round, const Freshness& freshness) {
  return !freshness.live_groups.empty() && freshness.clocks.highest() < round;
}

}  // namespace

void ClockVector::Advance(GroupId group, Step step) {
  Step& clock = steps_[group];
  clock = std::max(clock, step);
  highest_ = std::max(highest_, step);
}

Step ClockVector::StepOf(GroupId group) const {
  const auto found = steps_.find(group);
  return found == steps_.end() ? Step() : found->second;
}

void ClockVector::Describe(Version version, proto::ShardState& state) const {
  state.set_version(version.value());
  uint64_t digest = MixBits(version.value());
  for (const auto& [group, step] : steps_) {
    proto::GroupClock& clock = *state.add_clocks();
    clock.set_group(group.value());
    clock.set_step(step.value());
    digest = MixBits(digest ^ group.value());
    digest = MixBits(digest ^ step.value());
  }
  state.set_clock_digest(digest);
}

ReadRequirement ReadRequirement::Of(const proto::ReadBound& bound, const Contract& contract) {
  ReadRequirement requirement{.version = Version(bound.min_version())};
  if (bound.has_max_staleness()) {
    requirement.step = Step(bound.step() - std::min(bound.step(), bound.max_staleness()));
  } else {
    requirement.step = contract.RequiredStep(Step(bound.step()));
    requirement.round = contract.RequiredRound(Step(bound.step()));
  }
  if (bound.max_age_ms() != 0) {
    requirement.age = absl::Milliseconds(1) * static_cast<double>(bound.max_age_ms());
  }
  return requirement;
}

bool IsMet(const ReadRequirement& requirement, const Freshness& freshness) {
  if (freshness.version < requirement.version || freshness.age > requirement.age) return false;
  if (requirement.round && LacksRound(*requirement.round, freshness)) return false;
  if (!requirement.step) return true;
  return std::none_of(
      freshness.live_groups.begin(), freshness.live_groups.end(),
      [&](const LiveGroup& group) { return IsBehind(group, *requirement.step, freshness); });
}

std::string Missing(const ReadRequirement& requirement, const Freshness& freshness) {
  std::vector<std::string> parts;
  size_t groups = 0;
  if (requirement.step) {
    for (const LiveGroup& group : freshness.live_groups) {
      if (!IsBehind(group, *requirement.step, freshness) || ++groups > kGroupsNamedMax) continue;
      parts.push_back(absl::StrCat("group ", group.id.value(), " is at step ",
                                   freshness.clocks.StepOf(group.id).value(), " of ",
                                   requirement.step->value()));
    }
  }
  if (groups > kGroupsNamedMax) {
    parts.push_back(absl::StrCat(groups - kGroupsNamedMax, " more groups are behind"));
  }
  if (requirement.round && LacksRound(*requirement.round, freshness)) {
    parts.push_back(absl::StrCat("the last round is ", freshness.clocks.highest().value(), " of ",
                                 requirement.round->value()));
  }
  if (freshness.version < requirement.version) {
    parts.push_back(absl::StrCat("the version is ", freshness.version.value(), " of ",
                                 requirement.version.value()));
  }
  if (freshness.age > requirement.age) {
    parts.push_back(absl::StrCat("the last update is ", absl::FormatDuration(freshness.age),
                                 " old, wanted at most ", absl::FormatDuration(requirement.age)));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace covey
