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

}  // namespace covey::sim
