// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

// How far the straggler ladder may go. Each rung includes those before it.
enum class StragglerRung { kOff, kObserve, kShift, kPartial, kRegroup, kEvict };

// "off", "observe", "shift", "partial", "regroup", "evict". INVALID_ARGUMENT: anything else.
absl::StatusOr<StragglerRung> ParseStragglerRung(absl::string_view text);
absl::string_view StragglerRungName(StragglerRung rung);

}  // namespace covey
