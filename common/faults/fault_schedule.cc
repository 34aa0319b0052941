// SPDX-License-Identifier: Apache-2.0
#include "common/faults/fault_schedule.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace covey {
FaultSchedule::FaultSchedule(const FaultPlan& plan) {
  for (const Fault& fault : plan) {
    actions_.push_back({.at = fault.at, .fault = fault});
    if (fault.duration == absl::InfiniteDuration()) continue;
    actions_.push_back({.at = fault.at + fault.duration, .fault = fault, .begins = false});
  }
  std::stable_sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) {
    return std::make_tuple(a.at, a.begins) < std::make_tuple(b.at, b.begins);
  });
  std::map<std::tuple<FaultKind, std::string, std::string>, int> in_force;
  for (Action& action : actions_) {
    const Fault& fault = action.fault;
    if (HappensOnce(fault.kind)) continue;
    int& count = in_force[{fault.kind, fault.target, fault.other}];
    count += action.begins ? 1 : -1;
    action.last = count == (action.begins ? 1 : 0);
  }
}

std::vector<FaultSchedule::Action> FaultSchedule::Due(absl::Duration elapsed) {
  std::vector<Action> due;
  while (!done() && actions_[next_].at <= elapsed) due.push_back(actions_[next_++]);
  return due;
}

std::vector<Fault> FaultSchedule::InForce() const {
  std::vector<Fault> faults;
  for (size_t i = 0; i < next_; ++i) {
    const Action& action = actions_[i];
    if (HappensOnce(action.fault.kind)) continue;
    if (action.begins) {
      faults.push_back(action.fault);
    } else {
      faults.erase(std::find_if(faults.begin(), faults.end(),
                                [&](const Fault& fault) { return fault == action.fault; }));
    }
  }
  return faults;
}

absl::Duration FaultSchedule::NextAt() const {
  return done() ? absl::InfiniteDuration() : actions_[next_].at;
}

}  // namespace covey
