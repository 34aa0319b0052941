// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/planted_bug.h"

namespace covey {

// Plants a bug in this process, in place of an earlier one. A binary that links this file also
// plants, at its start, the bug that the environment variable COVEY_PLANTED_BUG names; an unknown
// name ends the process. For tests only. Thread-safe.
void PlantBug(PlantedBug bug);

// kNone for an unknown name.
PlantedBug PlantedBugOfName(absl::string_view name);

}  // namespace covey
