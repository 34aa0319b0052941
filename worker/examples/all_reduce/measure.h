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

// What the user chooses; all workers of a run must be given the same.
struct Options {
  // Data that each member has, 1 KiB to 1 GiB; cut to whole elements.
  uint64_t bytes = 8 << 20;
  // Measured sums, 1 to 10^6, after one that is not.
  uint64_t repetitions = 5;

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

// Of one member.
struct Outcome {
  // One per repetition: from when all members were ready to when this one had the sum.
  std::vector<absl::Duration> durations;
  // Of any element of any sum, in proportion to the largest element.
  double error_max = 0;

  absl::Duration Median() const;
};

// Element `i` as member `rank` gives it: a small whole number, so that sums in float32 are exact.
float Term(uint32_t rank, size_t i);
// Of `sums` as the group should have them, over members 0 to `members` - 1. NaN is infinitely
// wrong.
double ErrorOf(const std::vector<float>& sums, uint32_t members);

// Sums again and again within the worker's group. `warm` is called when the measurement begins.
// Blocks. Errors: those of group.h.
absl::StatusOr<Outcome> Measure(worker::Group& group, const Options& options,
                                const std::function<absl::Time()>& now,
                                const std::function<void()>& warm);

}  // namespace covey::all_reduce
