// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace covey::synthetic {

// The duration of the steps of all workers, in one file, for `covey simulate`: one line per worker
// and step, {"worker":0,"step":1,"compute_seconds":0.012,"step_seconds":0.015}, in any order. The
// second time is from the end of the step before to the end of this one.
//
// Actor-confined; the workers' processes append to the same file without conflicts.
class StepTrace {
 public:
  // UNAVAILABLE: the file cannot be opened, with the reason. An empty path records nothing.
  static absl::StatusOr<StepTrace> Open(const std::string& path);
  ~StepTrace();
  StepTrace(StepTrace&& other) noexcept;
  StepTrace& operator=(StepTrace&&) = delete;

  void Add(uint32_t worker, uint64_t step, absl::Duration compute, absl::Duration whole);
  // Writes all pending lines to the file. UNAVAILABLE: the reason why that failed.
  absl::Status Flush();

 private:
  StepTrace(std::string path, int descriptor);

  const std::string path_;
  int descriptor_;  // negative: none
  std::string lines_;
};

}  // namespace covey::synthetic
