// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/runtime/config_file.h"
#include "worker/group.h"

namespace covey::all_reduce {

// Command-line options; they must be the same for all workers of a run.
struct Options {
  // Bytes of data on each member, 1 KiB to 1 GiB; truncated to whole elements.
  uint64_t bytes = 8 << 20;
  // Measured repetitions, 1 to 10^6, after one that is not measured.
  uint64_t repetitions = 5;
  // While a sum is under way, each member computes for so long without a call, 0 to 60,000; then it
  // waits for the sum.
  double compute_milliseconds = 0;
  // False: the sum begins when the computation has ended.
  bool overlap = true;
  // The number of tensors of equal size, 1 to 256, that the data is divided into; each has a sum of
  // its own.
  uint32_t tensors = 1;
  // False: the sum of a tensor begins when that of the one before it has ended.
  bool at_once = true;

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

// The result of one member.
struct Outcome {
  // One per repetition: the time from when a member knew that all were ready to when it had the
  // sum, the mean of all members. The member that knows first waits for the others, and the last
  // one finds their data on the way, so a single member's time may have too much or too little of
  // the link's latency.
  std::vector<absl::Duration> durations;
  // The largest error of any element of any sum, relative to the largest element.
  double error_max = 0;

  absl::Duration Median() const;
};

// Element `i` on member `rank`: a small whole number, so that sums in float32 are exact.
float Term(uint32_t rank, size_t i);
// The error of `sums` relative to the expected sums over members 0 to `members` - 1. Infinite when
// a value is NaN.
double ErrorOf(const std::vector<float>& sums, uint32_t members);

// Sums repeatedly within the worker's group. `warm` is called when the measurement begins. Blocks.
// Errors: those of group.h.
absl::StatusOr<Outcome> Measure(worker::Group& group, const Options& options,
                                const std::function<absl::Time()>& now,
                                const std::function<void()>& warm);

}  // namespace covey::all_reduce
