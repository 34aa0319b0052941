// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::cli {

// The computation times of a real run's steps. A value.
struct RecordedSteps {
  // Seconds, in the order of steps; a worker has at least one.
  std::vector<std::vector<double>> workers;

  bool empty() const { return workers.empty(); }
  double MeanSeconds() const;
};

// Reads one JSON object per line, {"worker": 0, "step": 1, "compute_seconds": 0.012}, in any order;
// other keys are ignored. Workers without steps are left out, and the others renumbered.
// INVALID_ARGUMENT: a line is not such an object, a step occurs twice, or there are no steps; names
// the line. RESOURCE_EXHAUSTED: more than kRecordedStepsMax.
absl::StatusOr<RecordedSteps> ParseRecordedSteps(absl::string_view text);

// More steps would not change the distribution of times.
inline constexpr size_t kRecordedStepsMax = 10'000'000;

}  // namespace covey::cli
