// SPDX-License-Identifier: Apache-2.0
#include "common/base/small_limits_switch.h"

#include <atomic>

#include "common/base/small_limits.h"

namespace covey {
namespace {

std::atomic<bool> in_force{false};

}  // namespace

void SetSmallLimits(bool small) { in_force = small; }

bool SmallLimitsInForce() { return in_force.load(std::memory_order_relaxed); }

}  // namespace covey
