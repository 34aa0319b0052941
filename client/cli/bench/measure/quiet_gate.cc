// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/quiet_gate.h"

#include <algorithm>
#include <utility>

namespace covey::cli {
namespace {

// Ticks of processes that have ended are counted late, so differences may be negative.
double Share(uint64_t before, uint64_t after, uint64_t total) {
  return after <= before || total == 0
             ? 0
             : static_cast<double>(after - before) / static_cast<double>(total);
}

}  // namespace

QuietGate::QuietGate(const Options& options, Machine machine)
    : options_(options), machine_(std::move(machine)) {
  last_ = machine_.read();
  last_time_ = machine_.now();
}

QuietGate::Shares QuietGate::Observe() {
  const MachineTicks ticks = machine_.read();
  const uint64_t total = ticks.total > last_.total ? ticks.total - last_.total : 0;
  const double busy = Share(last_.busy, ticks.busy, total);
  const double own = Share(last_.own, ticks.own, total);
  const Shares shares = {.foreign = std::max(0.0, busy - own),
                         .steal = Share(last_.steal, ticks.steal, total)};
  const absl::Time now = machine_.now();
  is_quiet_ = now - last_time_ >= options_.window && IsQuiet(shares);
  last_ = ticks;
  last_time_ = now;
  return shares;
}

bool QuietGate::IsQuiet(const Shares& shares) const {
  return shares.foreign < options_.foreign_share_max && shares.steal < options_.steal_share_max;
}

void QuietGate::AwaitQuiet() {
  while (!is_quiet_ && HasBudget()) {
    machine_.wait(options_.window);
    Observe();
    if (!is_quiet_) counts_.waited += options_.window;
  }
  Observe();
}

QuietGate::Verdict QuietGate::Judge() {
  const absl::Time began = last_time_;
  judged_ = Observe();
  const bool quiet = IsQuiet(judged_);
  if (!quiet && HasBudget()) {
    // A rejected repetition counts as waiting, or noise that recurs would never end the run.
    counts_.waited += std::max(last_time_ - began, options_.window);
    ++counts_.rejected;
    return Verdict::kRepeat;
  }
  ++counts_.kept;
  counts_.foreign_share_max = std::max(counts_.foreign_share_max, judged_.foreign);
  counts_.steal_share_max = std::max(counts_.steal_share_max, judged_.steal);
  if (quiet) return Verdict::kQuiet;
  ++counts_.noisy;
  return Verdict::kKeepNoisy;
}

}  // namespace covey::cli
