// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {

// The same code, with what was being done, and to what, in front of the message:
// Annotate("table 'weights'", status) says "table 'weights': …". OK stays OK.
inline absl::Status Annotate(absl::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace covey
