// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace covey::cli {

// Processor time of the whole machine since it started, in clock ticks of all cores together.
struct MachineTicks {
  // Idle or not.
  uint64_t total = 0;
  // Spent by processes, without interrupts: theirs may be anyone's work.
  uint64_t busy = 0;
  // Of it by the processes that take part in the measurement.
  uint64_t own = 0;
  // Taken away by the hypervisor.
  uint64_t steal = 0;
};

// Keeps repetitions away from other programs: a repetition starts when they have used little of the
// machine for a while, and is repeated when they used more during it. The whole run waits no longer
// than a budget; then it goes on, and the noisy repetitions are counted.
//
//   gate.AwaitQuiet();  …one repetition…  if (gate.Judge() == kRepeat) do it again
//
// Confined to one thread.
class QuietGate {
 public:
  struct Options {
    // Largest share of the machine for other programs, and for the hypervisor.
    double foreign_share_max = 0.08;
    double steal_share_max = 0.05;
    // Length of the observation before a repetition; the previous repetition counts.
    absl::Duration window = absl::Milliseconds(300);
    // Longest wait of the whole run.
    absl::Duration budget = absl::Seconds(30);
  };
  // How the machine is read, and the clock. Replaced by tests.
  struct Machine {
    std::function<MachineTicks()> read;
    std::function<absl::Time()> now;
    std::function<void(absl::Duration)> wait;
  };

  enum class Verdict {
    kQuiet,
    // Noisy: drop it and measure again.
    kRepeat,
    // Noisy, but the budget is used up: keep it.
    kKeepNoisy,
  };

  // Shares of the machine.
  struct Shares {
    // Used by other programs.
    double foreign = 0;
    // Taken by the hypervisor.
    double steal = 0;
  };

  // Repetitions and waiting so far.
  struct Counts {
    uint32_t kept = 0;
    uint32_t rejected = 0;
    uint32_t noisy = 0;
    // Of the kept repetitions: the largest shares.
    double foreign_share_max = 0;
    double steal_share_max = 0;
    absl::Duration waited;
  };

  QuietGate(const Options& options, Machine machine);

  // Returns when the machine is quiet or the budget is used up.
  void AwaitQuiet();
  // Judges the time since AwaitQuiet returned, which was one repetition.
  Verdict Judge();

  const Counts& counts() const { return counts_; }
  // Of the repetition that was judged last.
  const Shares& judged() const { return judged_; }

 private:
  // Of the time since the last call.
  Shares Observe();
  bool IsQuiet(const Shares& shares) const;
  bool HasBudget() const { return counts_.waited < options_.budget; }

  const Options options_;
  const Machine machine_;
  MachineTicks last_;
  absl::Time last_time_;
  // The last observation covered a window or more, and was quiet.
  bool is_quiet_ = false;
  Shares judged_;
  Counts counts_;
};

}  // namespace covey::cli
