// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/step_times.h"
#include "worker/config.h"
#include "worker/examples/synthetic/figures.h"
#include "worker/examples/synthetic/options.h"
#include "worker/worker.h"

namespace covey::synthetic {

// Functions that a run needs from its caller; called on the training thread.
struct Surroundings {
  // Monotonic time.
  std::function<absl::Time()> now;
  // Lets the given time pass; an error ends the run.
  std::function<absl::Status(absl::Duration)> pause;
  // Prints a line of progress: "progress {json}".
  std::function<void(absl::string_view)> print;
};

// The result of a run, on the first worker that has figures; empty on the others.
struct Outcome {
  // By rank.
  std::vector<Figures> workers;
  // The distance of the final values from the optimum, as defined by quadratic.h.
  double distance = 0;
  // Where the time of this worker's steps went.
  client::StepTimes step_times;
};

// Trains as one worker of a run in which every worker calls this with the same options: waits for
// each tensor, "computes" with it, and submits it, last one first. Blocks until the last worker of
// all has trained. The group's first member reports progress about once a second. Errors: those of
// worker/hybrid_step.h.
absl::StatusOr<Outcome> Train(worker::Worker& worker, const worker::WorkerConfig& config,
                              const Options& options, const Surroundings& surroundings);

}  // namespace covey::synthetic
