// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "common/faults/fault.h"

namespace covey {

// What is to be done when, to carry out a plan. Whoever has a clock asks it:
//
//   FaultSchedule schedule(plan);
//   while (!schedule.done()) {
//     for (const FaultSchedule::Action& action : schedule.Due(elapsed)) ...
//     // wait until schedule.NextAt()
//   }
//
// Actions come in order of time; at the same time ends before beginnings, else in the plan's order.
// Faults may overlap: what ends may still be in force for another fault's sake, see Action::last.
// A value; deterministic.
class FaultSchedule {
 public:
  struct Action {
    absl::Duration at;
    // Of the plan.
    Fault fault;
    // Otherwise it is put right.
    bool begins = true;
    // Of the faults in force, none other has the same kind, target and other: when it ends, the
    // effect ends too.
    bool last = true;
  };

  explicit FaultSchedule(const FaultPlan& plan);

  // What has become due up to `elapsed` and was not returned before.
  std::vector<Action> Due(absl::Duration elapsed);
  // What is in force, in the order in which it began; without what happens once.
  std::vector<Fault> InForce() const;
  // Infinite when nothing is left.
  absl::Duration NextAt() const;
  bool done() const { return next_ == actions_.size(); }

 private:
  // In order; `last` is set for each when the schedule is made.
  std::vector<Action> actions_;
  size_t next_ = 0;
};

}  // namespace covey
