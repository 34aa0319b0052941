// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace covey::worker {

// How long the program has been away, in all (Worker::SetAway). Times never go back from one call
// to the next.
//
// Confined to the program's thread.
class AwayClock {
 public:
  // The program is away from now on, until End, and at most until then.
  void Begin(absl::Time now, absl::Time until) {
    End(now);
    since_ = now;
    until_ = until;
  }
  void End(absl::Time now) {
    total_ = Total(now);
    since_ = until_ = now;
  }
  bool is_away(absl::Time now) const { return now < until_; }
  // Until `time`, which is not before the last call of Begin and End.
  absl::Duration Total(absl::Time time) const {
    return total_ + std::max(std::min(time, until_) - since_, absl::ZeroDuration());
  }

 private:
  absl::Time since_ = absl::UnixEpoch();
  absl::Time until_ = absl::UnixEpoch();
  absl::Duration total_ = absl::ZeroDuration();
};

}  // namespace covey::worker
