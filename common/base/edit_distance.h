// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace covey {

// The least number of insertions, deletions and replacements that turn `a` into `b` (Levenshtein).
// Used to suggest the known name nearest to a mistyped one. O(|a| |b|). Pure.
size_t EditDistance(absl::string_view a, absl::string_view b);

}  // namespace covey
