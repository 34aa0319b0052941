// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey {

// The time by which certificates are valid. All else in a process counts by MonotonicNow
// (common/base/clock.h), which nobody sets.
absl::Time WallClockNow();

}  // namespace covey
