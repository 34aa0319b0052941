// SPDX-License-Identifier: Apache-2.0
#include "common/base/small_limits.h"

#include "absl/base/attributes.h"

namespace covey {

// A program that links small_limits_switch.cc gets the definition there instead of this one.
ABSL_ATTRIBUTE_WEAK bool SmallLimitsInForce() { return false; }

}  // namespace covey
