// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <time.h>

namespace covey {

// CLOCK_BOOTTIME goes on while the machine is suspended, unlike CLOCK_MONOTONIC, which is
// std::chrono::steady_clock. Others go on meanwhile: what had a lease must find that it is over.
absl::Time MonotonicNow() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace covey
