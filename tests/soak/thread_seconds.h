// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace covey {

// Seconds for which this thread runs `work`. Other programs do not count.
template <typename Work>
double ThreadSecondsOf(const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double began = now();
  work();
  return now() - began;
}

}  // namespace covey
