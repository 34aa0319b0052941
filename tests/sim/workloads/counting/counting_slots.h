// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "tests/sim/workloads/counting/counting_plan.h"

namespace covey::sim {

// Gives each push of a run a slot of its own. All programs share it; the slots that the auditor
// takes are above those of the clients. Actor-confined; the plan outlives it.
class CountingSlots {
 public:
  explicit CountingSlots(const CountingPlan& plan) : plan_(plan) {}

  // Whether every push of the plan has its slot.
  bool exhausted() const { return pushes_taken_ >= plan_.pushes; }
  uint64_t TakeForPush() {
    ++pushes_taken_;
    return next_++;
  }

  // Called once the clients take no more.
  uint64_t TakeForAuditor() {
    auditors_first_ = std::min(auditors_first_, next_);
    return next_++;
  }
  // The clients' slots are below it.
  uint64_t auditors_first() const { return auditors_first_; }

  uint64_t pushes_taken() const { return pushes_taken_; }

 private:
  const CountingPlan& plan_;
  uint64_t next_ = 0;
  uint64_t pushes_taken_ = 0;
  uint64_t auditors_first_ = ~uint64_t{0};
};

}  // namespace covey::sim
