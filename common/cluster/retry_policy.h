// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey {

// How long to wait after each try that has failed, or has not been answered: the delay doubles from
// try to try. Immutable value. Pure.
struct RetryPolicy {
  // Upper bound of the delay.
  absl::Duration longest = absl::InfiniteDuration();
  // The delay grows this many times at most; below 63.
  int doublings_max = 10;

  // The delay after a try that `tries` >= 0 failed ones preceded. `first`: the delay after the
  // first try, often a measured round trip.
  absl::Duration DelayAfter(int tries, absl::Duration first) const {
    return std::min(longest, first * (int64_t{1} << std::min(tries, doublings_max)));
  }
};

// Jitter, so that peers that failed together do not return together: in [delay, 1.1 * delay], for
// delays that must not be shortened.
inline absl::Duration UpToATenthLonger(absl::Duration delay, Random& random) {
  return delay * (1 + 0.1 * random.Uniform());
}
// Jitter in [delay / 2, delay], which spreads peers further.
inline absl::Duration DownToHalf(absl::Duration delay, Random& random) {
  return delay * (0.5 + 0.5 * random.Uniform());
}

}  // namespace covey
