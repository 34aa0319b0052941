// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey {

// The steady clock as absl::Time: only differences have a meaning. The only clock of this code;
// actors never read it, but take `now` as an argument. Thread-safe.
absl::Time MonotonicNow();

}  // namespace covey
