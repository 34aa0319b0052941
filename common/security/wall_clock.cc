// SPDX-License-Identifier: Apache-2.0
#include "common/security/wall_clock.h"

#include "absl/time/clock.h"

namespace covey {

absl::Time WallClockNow() { return absl::Now(); }

}  // namespace covey
