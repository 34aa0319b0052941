// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/group_count.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace covey {

absl::Status ParseGroupCount(absl::string_view text, uint32_t& groups, bool& automatic) {
  automatic = text == "auto";
  if (automatic) {
    groups = 1;
  } else if (!absl::SimpleAtoi(text, &groups)) {
    return absl::InvalidArgumentError(
        "no number of groups; write one, or auto to let the scheduler choose");
  }
  return absl::OkStatus();
}

std::string GroupCountText(uint32_t groups, bool automatic) {
  return automatic ? "auto" : absl::StrCat(groups);
}

}  // namespace covey
