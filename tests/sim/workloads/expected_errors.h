// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace covey::sim {

// Errors of pushes and pulls that faults explain; any other error is a violation. A server that
// cannot be reached, or does not serve the shard, is no error: the client retries until the
// deadline.
inline bool IsExpectedOfOperation(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kDeadlineExceeded:  // The fault outlasted the caller's time-out.
    case absl::StatusCode::kAborted:           // Declared dead in the meantime.
      return true;
    default:
      return false;
  }
}

// The same for requests to the scheduler.
inline bool IsExpected(const absl::Status& status) {
  return IsExpectedOfOperation(status) || absl::IsUnavailable(status);
}

// The same for pushes and flushes. A flush reports pushes that were received and lost with the
// content of a shard. So does a push that the client had no memory to keep until it was durable.
inline bool IsExpectedOfPush(const absl::Status& status, bool history_was_lost) {
  return absl::IsDataLoss(status) ? history_was_lost : IsExpectedOfOperation(status);
}

}  // namespace covey::sim
