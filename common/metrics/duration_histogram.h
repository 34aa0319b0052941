// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"

namespace covey {

// How many durations were how long: a histogram of Prometheus in plain integers, which a loop keeps
// for itself and a page reads (MetricPage::Histogram). Record costs one comparison per bound.
//
// A value. Not thread-safe.
class DurationHistogram {
 public:
  using Bounds = std::span<const absl::Duration>;
  // For what takes from a millisecond to half a minute.
  static constexpr absl::Duration kWide[] = {absl::Milliseconds(1),   absl::Milliseconds(3),
                                             absl::Milliseconds(10),  absl::Milliseconds(30),
                                             absl::Milliseconds(100), absl::Milliseconds(300),
                                             absl::Seconds(1),        absl::Seconds(3),
                                             absl::Seconds(10),       absl::Seconds(30)};

  // The upper bounds of the buckets, each part of its bucket, in growing order; a last bucket has
  // all that is longer. `bounds` outlives the value.
  explicit DurationHistogram(Bounds bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  // A negative duration counts as zero.
  void Record(absl::Duration duration) {
    if (duration < absl::ZeroDuration()) duration = absl::ZeroDuration();
    size_t bucket = 0;
    while (bucket < bounds_.size() && duration > bounds_[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += duration;
  }

  Bounds bounds() const { return bounds_; }
  // One per bound, and the last bucket.
  const std::vector<uint64_t>& counts() const { return counts_; }
  absl::Duration sum() const { return sum_; }

 private:
  Bounds bounds_;
  std::vector<uint64_t> counts_;
  absl::Duration sum_;
};

}  // namespace covey
