#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey {

// Exponential back-off with full jitter in [half, whole]: peers that failed together do not return
// together. Actor-confined; deterministic in its Random.
class Backoff {
 public:
  struct Options {
    absl::Duration first = absl::Milliseconds(5);
    absl::Duration longest = absl::Seconds(1);
    double factor = 2;
  };

  Backoff(const Options& options, Random random)
      : options_(options), random_(random), next_(options.first) {}

  // How long to wait before the next try.
  absl::Duration Next() {
    const absl::Duration wait = next_ * (0.5 + 0.5 * random_.Uniform());
    next_ = std::min(options_.longest, next_ * options_.factor);
    return wait;
  }
  void Reset() { next_ = options_.first; }

 private:
  Options options_;
  Random random_;
  absl::Duration next_;
};

}  // namespace covey
