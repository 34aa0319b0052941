// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/planted_bug.h"

namespace covey {

// Plants a bug, in place of an earlier one, in this process. Whoever links this file plants what
// the environment variable COVEY_PLANTED_BUG names at its start, too; a name that no bug has ends
// the process. For tests only. Thread-safe.
void PlantBug(PlantedBug bug);

// kNone for a name that no bug has.
PlantedBug PlantedBugOfName(absl::string_view name);

}  // namespace covey
