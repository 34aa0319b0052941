// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/sim/checkers/violations.h"

namespace covey::sim {

// Checks that every operation that a program starts ends by its deadline (nothing hangs). A process
// that was paused gets some time to catch up. Actor-confined.
class DeadlineWatch {
 public:
  // `name`: of the workload, for violations.
  DeadlineWatch(absl::string_view name, Violations& violations)
      : name_(name), violations_(violations) {}

  // Returns the number with which End is called.
  uint64_t Begin(absl::Time deadline) {
    deadlines_[next_] = deadline;
    return next_++;
  }
  void End(uint64_t number) { deadlines_.erase(number); }

  // Call it at every step of the program, and when NextWake() is due.
  void Check(absl::Time now) {
    // An operation that was overdue at the last check had its chance.
    for (const auto& [number, deadline] : deadlines_) {
      if (now <= deadline + kSlack) continue;
      const auto [late, is_new] = late_since_.try_emplace(number, now);
      if (is_new || now - late->second <= kSlack) continue;
      violations_.Add(
          name_, absl::StrCat("an operation has not ended ", absl::FormatDuration(now - deadline),
                              " after its deadline"));
    }
    std::erase_if(late_since_,
                  [this](const auto& late) { return deadlines_.count(late.first) == 0; });
  }
  absl::Time NextWake() const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [number, deadline] : deadlines_) {
      const auto late = late_since_.find(number);
      const absl::Time from = late == late_since_.end() ? deadline : late->second;
      next = std::min(next, from + kSlack + absl::Milliseconds(1));
    }
    return next;
  }

 private:
  static constexpr absl::Duration kSlack = absl::Seconds(1);

  const std::string name_;
  Violations& violations_;
  uint64_t next_ = 1;
  std::map<uint64_t, absl::Time> deadlines_;
  std::map<uint64_t, absl::Time> late_since_;
};

}  // namespace covey::sim
