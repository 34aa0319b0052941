// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "common/cluster/ids.h"

namespace covey::worker {

// Tells by which number the group knows a step of the program. The program counts the steps that it
// begins, from 1; the group's number of a step (PushRequest.step) is known for certain when its
// values arrive, because a late program may find that its group is some steps ahead.
//
// One per worker, used by HybridStep and DataSource on the program's thread. Not thread-safe; pure.
class StepNumbers {
 public:
  // Numbers are kept for this many steps.
  static constexpr uint64_t kKept = 1024;

  // The program begins its next step.
  void Begin() { ++begun_; }
  uint64_t begun() const { return begun_; }

  // Precondition: 1 <= `own` <= begun().
  void Set(uint64_t own, Step number) { known_[own % kKept] = {.own = own, .number = number}; }
  // Step() = not known: too early, too long ago, or the program makes no hybrid steps.
  Step Of(uint64_t own) const {
    const Known& known = known_[own % kKept];
    return known.own == own ? known.number : Step();
  }

 private:
  struct Known {
    uint64_t own = 0;
    Step number;
  };

  uint64_t begun_ = 0;
  std::array<Known, kKept> known_ = {};
};

}  // namespace covey::worker
