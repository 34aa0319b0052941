// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/runtime/config_file.h"
#include "worker/examples/lbfgs/direction.h"
#include "worker/examples/lbfgs/problem.h"

namespace covey::lbfgs {

// Command-line options of a run; they must be the same for all workers of a run.
struct Options {
  // 2 to 2^26 features, 1 to 10 million samples, 1 to 1024 features of each.
  ProblemSize size = {.features = 10'000, .samples = 20'000};
  // Of the samples.
  uint64_t seed = 1;
  // Largest shard in MiB, 1 to 16.
  uint64_t shard_mib = 16;
  // history: 1 to 20 pairs. iterations: 1 to 1000. tolerance: 0 to 1. l2: 1e-9 to 10.
  Settings settings;

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::lbfgs
