// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace covey {

// The option --groups: a number, or "auto" for groups that the scheduler plans.

// For "auto", `groups` is 1 and `automatic` true. INVALID_ARGUMENT: it is something else; the
// message continues the phrase `"many" is `.
absl::Status ParseGroupCount(absl::string_view text, uint32_t& groups, bool& automatic);
std::string GroupCountText(uint32_t groups, bool automatic);

}  // namespace covey
