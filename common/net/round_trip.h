// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace covey {

// How long answers of one peer take, so that a message is not repeated because the peer is slow:
// under overload the repeats would take the place of other messages, and the more is offered the
// less would get done. An average as in RFC 6298, which follows longer times at once.
//
// A request that was repeated says little: the answer may be to either. It counts with at most
// twice what was known, so that the average still follows when every request is repeated, and stays
// bounded where messages get lost (the times of repeats that waited for their turn do not add up).
// Actor-confined. Pure.
class RoundTrip {
 public:
  void NoteFirst(absl::Duration took) {
    average_ = std::max(took, average_ + (took - average_) / kWeight);
  }
  void NoteRepeated(absl::Duration took, absl::Duration shortest) {
    took = std::min(took, std::max(shortest, 2 * average_));
    average_ += (took - average_) / kWeight;
  }

  // How long to wait for an answer before the request is sent again.
  absl::Duration Patience(absl::Duration shortest, absl::Duration longest) const {
    return std::clamp(2 * average_, shortest, longest);
  }

 private:
  static constexpr int kWeight = 8;

  absl::Duration average_ = absl::ZeroDuration();
};

}  // namespace covey
