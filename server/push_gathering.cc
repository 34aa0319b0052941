#include "server/push_gathering.h"

#include <utility>

#include "common/base/check.h"

namespace covey::server {

PushGathering::PushGathering(const Contract& contract, SpareBuffers& spares)
    : spares_(spares),
      gate_(contract),
      arrivals_{.pushes = {}, .gradient_sum = GradientSum(spares)} {}

void PushGathering::Add(const GatheredPush& push, const Buffer& gradient) {
  const uint64_t number =
      gate_.Add({.group = push.group, .step = push.step, .samples = push.samples});
  if (!gate_.sums_on_arrival()) {
    held_.emplace(number, HeldPush{push, gradient});
    return;
  }
  arrivals_.pushes.push_back(push);
  arrivals_.gradient_sum.Add(gradient);
  arrivals_.samples += push.samples;
}

std::optional<GatheredUpdate> PushGathering::TakeDue(absl::Time now, const GroupCensus& groups) {
  const std::optional<UpdateGate::Update> due = gate_.TakeDue(now, groups);
  if (!due) return std::nullopt;
  GatheredUpdate update{.pushes = {}, .gradient_sum = GradientSum(spares_)};
  if (!held_.contains(due->pushes.front())) {
    COVEY_CHECK(due->pushes.size() == arrivals_.pushes.size());
    return std::exchange(arrivals_, std::move(update));
  }
  for (const uint64_t number : due->pushes) {
    const auto held = held_.find(number);
    update.pushes.push_back(held->second.push);
    update.gradient_sum.Add(held->second.gradient);
    held_.erase(held);
  }
  update.samples = due->samples;
  return update;
}

}  // namespace covey::server
