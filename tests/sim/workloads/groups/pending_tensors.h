// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"

namespace covey::sim {

// The tensors of a step that are in flight.
//
// Invariants:
//  - a member is told once that a tensor has ended;
//  - it is told soon after the deadline (nothing hangs). A process that was paused gets some time
//    to catch up.
//
// Actor-confined; violations outlive it.
class PendingTensors {
 public:
  // `member`: for violations.
  PendingTensors(std::string member, Violations& violations)
      : member_(std::move(member)), violations_(violations) {}

  bool empty() const { return pending_.empty(); }
  // `deadline`: of everything in flight.
  void Begin(size_t tensor, absl::Time deadline);
  void End(size_t tensor);
  // Nothing in flight is over its deadline before `floor`.
  void Stretch(absl::Time floor) {
    if (!empty()) deadline_ = std::max(deadline_, floor);
  }

  // Call it at every call of the program, and when NextWake() is due. `step`: for violations.
  void Check(absl::Time now, Step step);
  absl::Time NextWake() const;

 private:
  const std::string member_;
  Violations& violations_;
  std::set<size_t> pending_;
  absl::Time deadline_ = absl::InfiniteFuture();
  absl::Time late_since_ = absl::InfiniteFuture();
};

}  // namespace covey::sim
