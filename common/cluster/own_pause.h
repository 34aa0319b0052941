// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey {

// How long the caller's own loop stood still: it is called at `now` and was to be called at `due`,
// and delays of up to a second are usual for a busy loop. The silence of others in this time is no
// evidence against them, because what they have sent may wait unread. Pure.
inline absl::Duration OwnPause(absl::Time due, absl::Time now) {
  constexpr absl::Duration kUsualMax = absl::Seconds(1);
  return now - due > kUsualMax ? now - due : absl::ZeroDuration();
}

}  // namespace covey
