// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace covey {

// Measures how long one peer takes to reply, so that a request is not retried only because the peer
// is slow: under overload, retries would displace other messages, and the more is offered the less
// would get done. An average as in RFC 6298, which follows rising times at once.
//
// A reply after a retry is ambiguous: it may belong to either request. It counts with at most twice
// the known time. So the average still follows when every request is retried, and stays bounded
// when messages get lost. Actor-confined. Pure.
class RoundTrip {
 public:
  void NoteFirst(absl::Duration took) {
    average_ = std::max(took, average_ + (took - average_) / kWeight);
  }
  void NoteRepeated(absl::Duration took, absl::Duration shortest) {
    took = std::min(took, std::max(shortest, 2 * average_));
    average_ += (took - average_) / kWeight;
  }

  // How long to wait for a reply before the request is retried.
  absl::Duration Patience(absl::Duration shortest, absl::Duration longest) const {
    return std::clamp(2 * average_, shortest, longest);
  }

 private:
  static constexpr int kWeight = 8;

  absl::Duration average_ = absl::ZeroDuration();
};

}  // namespace covey
