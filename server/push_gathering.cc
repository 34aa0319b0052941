#include "server/push_gathering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"

namespace covey::server {

PushGathering::PushGathering(const Contract& contract, SpareBuffers& spares)
    : contract_(contract),
      spares_(spares),
      arrivals_{.pushes = {}, .gradient_sum = GradientSum(spares)} {}

absl::Status PushGathering::Admit(GroupId group, Step step) const {
  if (contract_.kind != Contract::Kind::kBsp) return absl::OkStatus();
  if (group == GroupId()) {
    return absl::InvalidArgumentError(
        "a bsp table takes pushes of groups only; push as a member of a group, or create the table "
        "with another contract");
  }
  if (step <= last_step_) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step.value(), " of group ", group.value(), " is over: step ",
                     last_step_.value(), " has been applied; wait for one step before the next"));
  }
  const auto same_step = steps_.find(step);
  if (same_step != steps_.end() && same_step->second.contains(group)) {
    return absl::AbortedError(absl::StrCat("step ", step.value(), " of group ", group.value(),
                                           " was pushed by an earlier generation of the group"));
  }
  size_t held = 0;
  for (const auto& [held_step, pushes] : steps_) held += pushes.contains(group);
  if (held >= kHeldStepsPerGroupMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("group ", group.value(), " is ", held,
                     " steps ahead of the slowest group; pull or wait before pushing on"));
  }
  return absl::OkStatus();
}

void PushGathering::Add(const GatheredPush& push, const Buffer& gradient) {
  samples_held_ += push.samples;
  if (contract_.kind == Contract::Kind::kBsp) {
    steps_[push.step].emplace(push.group, HeldPush{push, gradient});
    return;
  }
  arrivals_.pushes.push_back(push);
  arrivals_.gradient_sum.Add(gradient);
  arrivals_.samples += push.samples;
}

std::optional<GatheredUpdate> PushGathering::TakeDue(const GroupCensus& groups) {
  if (contract_.kind == Contract::Kind::kBsp) return TakeStep(groups);
  if (arrivals_.pushes.empty() || arrivals_.pushes.size() < ArrivalsPerUpdate(groups)) {
    return std::nullopt;
  }
  samples_held_ -= arrivals_.samples;
  return std::exchange(arrivals_, {.pushes = {}, .gradient_sum = GradientSum(spares_)});
}

std::optional<GatheredUpdate> PushGathering::TakeStep(const GroupCensus& groups) {
  if (steps_.empty()) return std::nullopt;
  HeldStep& step = steps_.begin()->second;
  const bool complete = std::all_of(groups.live.begin(), groups.live.end(),
                                    [&step](GroupId group) { return step.contains(group); });
  if (!complete) return std::nullopt;
  GatheredUpdate update{.pushes = {}, .gradient_sum = GradientSum(spares_)};
  for (const auto& [group, held] : step) {
    update.pushes.push_back(held.push);
    update.gradient_sum.Add(held.gradient);
    update.samples += held.push.samples;
  }
  samples_held_ -= update.samples;
  last_step_ = steps_.begin()->first;
  steps_.erase(steps_.begin());
  return update;
}

size_t PushGathering::ArrivalsPerUpdate(const GroupCensus& groups) const {
  if (contract_.kind != Contract::Kind::kBuffered) return 1;
  const size_t live = groups.live.size();
  if (contract_.buffer == 0) return std::max<size_t>(1, live);
  if (groups.known == 0) return contract_.buffer;
  // Rounded up, so that k shrinks only when groups are really gone.
  return std::max<size_t>(1, (contract_.buffer * live + groups.known - 1) / groups.known);
}

}  // namespace covey::server
