// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {

// The same status with `where` in front of its message, which says what was being done and to what:
// Annotate("table 'weights'", status) gives "table 'weights': …". An OK status stays OK.
inline absl::Status Annotate(absl::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace covey
