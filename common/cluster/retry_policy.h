// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey {

// How long to wait after each try that has failed, or has not been answered: twice as long as after
// the one before. Immutable value. Pure.
struct RetryPolicy {
  // No delay is longer.
  absl::Duration longest = absl::InfiniteDuration();
  // The delay grows this many times at most; below 63.
  int doublings_max = 10;

  // After `tries` >= 0 that failed before this one. `first`: the delay after the first try, often a
  // measured round trip.
  absl::Duration DelayAfter(int tries, absl::Duration first) const {
    return std::min(longest, first * (int64_t{1} << std::min(tries, doublings_max)));
  }
};

// Jitter, so that peers that failed together do not return together: in [delay, 1.1 * delay], for
// delays that must not be shorter than what they wait for.
inline absl::Duration UpToATenthLonger(absl::Duration delay, Random& random) {
  return delay * (1 + 0.1 * random.Uniform());
}
// In [delay / 2, delay]: spreads peers further.
inline absl::Duration DownToHalf(absl::Duration delay, Random& random) {
  return delay * (0.5 + 0.5 * random.Uniform());
}

}  // namespace covey
