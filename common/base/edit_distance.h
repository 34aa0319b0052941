// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace covey {

// Insertions, deletions and replacements that turn `a` into `b` (Levenshtein); finds the known name
// that a mistyped one is nearest to. O(|a| |b|). Pure.
size_t EditDistance(absl::string_view a, absl::string_view b);

}  // namespace covey
