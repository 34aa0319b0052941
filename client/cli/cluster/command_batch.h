// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/process/child_process.h"

namespace covey::cli {

// A program that runs to its end, within a deadline from its start.
struct BatchCommand {
  Program program;
  absl::Duration deadline;
};

// How it ended.
struct BatchOutcome {
  // Why it could not be started, or DEADLINE_EXCEEDED: it was killed.
  absl::Status status;
  // When `status` is OK.
  ChildExit exit;
  // At most kBatchOutputBytesMax each, the rest is dropped.
  std::string output;
  std::string error;

  bool ok() const { return status.ok() && exit.ok(); }
};
inline constexpr size_t kBatchOutputBytesMax = 1 << 20;

// Runs all, at most `at_once` at a time, and returns their outcomes in the same order. Blocks.
// CANCELLED: SIGINT or SIGTERM came (WaitForTermination); those that ran were killed.
absl::StatusOr<std::vector<BatchOutcome>> RunBatch(const std::vector<BatchCommand>& commands,
                                                   uint32_t at_once);

}  // namespace covey::cli
