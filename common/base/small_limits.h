// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace covey {

// Limits that a simulation can make small, so that a run of some hundred requests reaches them. The
// product contains the places, but no means to do so: there SmallLimitsInForce returns false. A
// test binary that links //common/base:small_limits_switch sets them by SetSmallLimits.

// Constant for the life of a process, or of a simulated run. Thread-safe.
bool SmallLimitsInForce();

// The limit in force: `limit` (common/cluster/limits.h), or `small`.
inline size_t LimitInForce(size_t limit, size_t small) {
  return SmallLimitsInForce() ? small : limit;
}

// Of kDedupWindow; clients and shards agree on it.
inline constexpr size_t kSmallDedupWindow = 32;

}  // namespace covey
