// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace covey::sim {

// Errors that faults explain; another one is a violation.
inline bool IsExpected(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::
        kDeadlineExceeded:            // The fault lasted longer than the caller's patience.
    case absl::StatusCode::kAborted:  // Declared dead meanwhile.
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

// The same of a flush, which tells of pushes that went with the content of a shard.
inline bool IsExpectedOfFlush(const absl::Status& status, bool history_was_lost) {
  return absl::IsDataLoss(status) ? history_was_lost : IsExpected(status);
}

}  // namespace covey::sim
