// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/group_efficiency.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace covey {
namespace {

constexpr double kEvenShare = 1000;

double LowerMedian(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double MedianPace(const std::vector<const WorkerPace*>& members) {
  std::vector<double> paces;
  for (const WorkerPace* member : members) paces.push_back(member->seconds_per_sample());
  return LowerMedian(std::move(paces));
}

double MedianStepSeconds(const std::vector<const WorkerPace*>& members) {
  std::vector<double> steps;
  for (const WorkerPace* member : members) steps.push_back(member->step_seconds());
  return LowerMedian(std::move(steps));
}

GroupEfficiency EfficiencyOf(const std::vector<const WorkerPace*>& members) {
  GroupEfficiency efficiency;
  double samples = 0;
  double speed = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const WorkerPace& member = *members[i];
    samples += member.samples_per_step();
    speed += member.samples_per_step() / member.step_seconds();
    if (member.step_seconds() > efficiency.slowest_step_seconds) {
      efficiency.slowest = i;
      efficiency.slowest_step_seconds = member.step_seconds();
    }
  }
  const double throughput = samples / efficiency.slowest_step_seconds;
  efficiency.part = throughput / speed;

  double others_samples = 0;
  double others_step = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == efficiency.slowest) continue;
    others_samples += members[i]->samples_per_step();
    others_step = std::max(others_step, members[i]->step_seconds());
  }
  if (others_step > 0) {
    efficiency.gain_without_slowest = others_samples / others_step / throughput;
  }
  return efficiency;
}

std::vector<uint32_t> SharesBySpeed(const std::vector<const WorkerPace*>& members,
                                    double share_min) {
  double speed = 0;
  for (const WorkerPace* member : members) speed += 1 / member->seconds_per_sample();
  std::vector<uint32_t> shares;
  for (const WorkerPace* member : members) {
    const double even = static_cast<double>(members.size());
    const double relative = even / member->seconds_per_sample() / speed;
    shares.push_back(
        static_cast<uint32_t>(std::lround(kEvenShare * std::max(relative, share_min))));
  }
  return shares;
}

}  // namespace covey
