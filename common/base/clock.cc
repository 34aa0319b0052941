// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <chrono>

namespace covey {

absl::Time MonotonicNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace covey
