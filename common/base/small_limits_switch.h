// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// Puts small limits in force in this process (small_limits.h), or ends that. For tests only.
// Thread-safe.
void SetSmallLimits(bool small);

}  // namespace covey
