// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "common/faults/fault.h"

namespace covey {

// The actions that carry out a plan, in order of time. A caller with a clock uses it as follows:
//
//   FaultSchedule schedule(plan);
//   while (!schedule.done()) {
//     for (const FaultSchedule::Action& action : schedule.Due(elapsed)) ...
//     // wait until schedule.NextAt()
//   }
//
// At the same time, ends come before beginnings, otherwise actions keep the plan's order. Faults
// may overlap: when one ends, its effect may continue because of another one, see Action::last. A
// value; deterministic.
class FaultSchedule {
 public:
  struct Action {
    absl::Duration at;
    // As in the plan.
    Fault fault;
    // True: the fault begins; false: it is put right.
    bool begins = true;
    // No other fault in force has the same kind, target and other: when this one ends, the effect
    // ends, too.
    bool last = true;
  };

  explicit FaultSchedule(const FaultPlan& plan);

  // Actions that have become due up to `elapsed` and were not returned before.
  std::vector<Action> Due(absl::Duration elapsed);
  // Faults in force, in the order in which they began, without kinds that happen once.
  std::vector<Fault> InForce() const;
  // Time of the next action; infinite when none is left.
  absl::Duration NextAt() const;
  bool done() const { return next_ == actions_.size(); }

 private:
  // Sorted by time; `last` is set for each when the schedule is made.
  std::vector<Action> actions_;
  size_t next_ = 0;
};

}  // namespace covey
