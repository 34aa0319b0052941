// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/config.h"
#include "worker/examples/synthetic/figures.h"
#include "worker/examples/synthetic/options.h"
#include "worker/worker.h"

namespace covey::synthetic {

// What a run needs from its surroundings; called on the training thread.
struct Surroundings {
  // Monotonic time.
  std::function<absl::Time()> now;
  // Lets so much time pass; an error ends the run.
  std::function<absl::Status(absl::Duration)> pause;
  // A line for whoever watches: "progress {json}".
  std::function<void(absl::string_view)> print;
};

// How a run ended; for the first worker that has figures, empty for the others.
struct Outcome {
  // By rank.
  std::vector<Figures> workers;
  // From the answer, as quadratic.h has it, of the final values.
  double distance = 0;
};

// Trains as one worker of a run in which every worker calls this with the same options: each tensor
// is waited for, "computed" with, and submitted, last one first. Blocks until the last worker of
// all has trained. The group's first member reports progress about once a second. Errors: those of
// worker/hybrid_step.h.
absl::StatusOr<Outcome> Train(worker::Worker& worker, const worker::WorkerConfig& config,
                              const Options& options, const Surroundings& surroundings);

}  // namespace covey::synthetic
