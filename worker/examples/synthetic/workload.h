// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "worker/examples/synthetic/options.h"

namespace covey::synthetic {

// The computation time of worker `rank` in its step `step` (from 1) over `samples` examples:
// samples x cost per sample x slowness x lognormal noise of mean 1, plus its hangs. Pure: the same
// in every run.
absl::Duration ComputeTime(const Options& options, uint32_t rank, uint64_t step, double samples);

}  // namespace covey::synthetic
