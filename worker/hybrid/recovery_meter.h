// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey::worker {

// Counts the steps that were interrupted because a member was gone, and measures how long the last
// one took from then until it was finished. Actor-confined. Deterministic.
class RecoveryMeter {
 public:
  // `steps`: the newest of each bucket. One more interruption on the way is the same recovery.
  void Interrupted(absl::Time now, std::vector<Step> steps) {
    if (!under_way()) {
      ++recoveries_;
      since_ = now;
    }
    steps_ = std::move(steps);
  }
  void Cancel() { since_ = absl::InfiniteFuture(); }
  // `finished_of(bucket)`: the newest step that the bucket has finished.
  template <typename FinishedOf>
  void Update(absl::Time now, FinishedOf finished_of) {
    if (!under_way()) return;
    for (size_t bucket = 0; bucket < steps_.size(); ++bucket) {
      if (finished_of(bucket) < steps_[bucket]) return;
    }
    time_ = now - std::exchange(since_, absl::InfiniteFuture());
  }

  uint64_t recoveries() const { return recoveries_; }
  absl::Duration time() const { return time_; }

 private:
  bool under_way() const { return since_ != absl::InfiniteFuture(); }

  uint64_t recoveries_ = 0;
  absl::Duration time_ = absl::ZeroDuration();
  absl::Time since_ = absl::InfiniteFuture();
  std::vector<Step> steps_;
};

}  // namespace covey::worker
