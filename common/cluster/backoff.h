// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/retry_policy.h"

namespace covey {

// A RetryPolicy that counts the tries itself and adds jitter: each delay is in [half, whole] of the
// policy's. Actor-confined; deterministic in its Random.
class Backoff {
 public:
  struct Options {
    absl::Duration first = absl::Milliseconds(5);
    absl::Duration longest = absl::Seconds(1);
  };

  Backoff(const Options& options, Random random)
      : first_(options.first), policy_{.longest = options.longest}, random_(random) {}

  // The delay before the next try.
  absl::Duration Next() { return DownToHalf(policy_.DelayAfter(tries_++, first_), random_); }
  void Reset() { tries_ = 0; }

 private:
  absl::Duration first_;
  RetryPolicy policy_;
  Random random_;
  int tries_ = 0;
};

}  // namespace covey
