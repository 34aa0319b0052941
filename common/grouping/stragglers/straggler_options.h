// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

// The bounds of the straggler ladder, with their reasons. The scheduler's flags set some of them. A
// value.
struct StragglerOptions {
  StragglerRung highest = StragglerRung::kPartial;
  WorkerPace::Options pace = {};

  // Above noise: the ratio of two averages of sigma 0.3 exceeds 1.5 once in 10^5 reports.
  double slow_ratio = 1.5;
  size_t slow_reports = 5;
  // Lower than slow_ratio, and for longer, so that decisions do not oscillate.
  double recovered_ratio = 1.2;
  size_t recovered_reports = 10;

  // Shares in force change when one of them is wrong by more than this and by more than
  // `share_errors` standard errors of the pace: each change is a decision.
  double share_change_min = 0.05;
  double share_errors = 4;
  // Fraction of an even share. With a smaller share, a member costs more than it contributes.
  double share_min = 0.1;

  // Fraction of a member's reports with a hiccup, above which its group does not wait for it; and
  // the number of reports needed to decide that.
  double hiccups_max = 0.05;
  size_t hiccup_reports_min = 40;
  // Members that a group waits for; 0 = all but the late ones, at least half. And how much longer
  // it waits for the others; 0 = half the usual step.
  uint32_t partial_minimum = 0;
  absl::Duration partial_grace = absl::ZeroDuration();

  // Throughput of a group over the summed speed of its members: the bounds for too low, and for
  // good again.
  double efficiency_min = 0.75;
  double efficiency_good = 0.85;
  // A group gives up its slowest member only if it is this many times faster without it.
  double gain_min = 1.25;
  // A worker fits into a group when its step takes at most this many times as long as the
  // group's.
  double fit_max = 1.25;
  // Groups are never made smaller than this.
  uint32_t group_members_min = 2;
  // An evicted worker computes nothing, so nothing shows that it has recovered: it may try again
  // after this time, which doubles with each further eviction.
  absl::Duration probation = absl::Minutes(5);

  // Reports of each member between two decisions about its group, during which the averages
  // forget the past.
  size_t settle_reports = 10;
};

}  // namespace covey
