// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/step_times.h"
#include "worker/config.h"
#include "worker/examples/fashion_mnist/dataset.h"
#include "worker/examples/fashion_mnist/evaluate.h"
#include "worker/examples/fashion_mnist/options.h"
#include "worker/gradient_noise.h"
#include "worker/worker.h"

namespace covey::fashion_mnist {

// The result of a run.
struct Outcome {
  // Of the whole run, over all workers.
  uint64_t samples = 0;
  absl::Duration duration;
  // The way to the target accuracy: samples of the whole run, and time since this worker began,
  // until the evaluation that first saw it.
  struct Target {
    uint64_t samples = 0;
    absl::Duration duration;
  };
  // Absent = it was not reached.
  std::optional<Target> target;
  // Quality of the final values, on the test split and on the first samples of the training split.
  // Only valid for a speaker: one worker of the run, or of each group.
  bool is_speaker = false;
  Quality test;
  Quality training;
  // Where the noise of gradients was measured: that of this worker's group at the end, if it is
  // known, and the group's batch; and the group's steps.
  std::optional<worker::GradientNoise> noise;
  uint64_t batch = 0;
  uint64_t steps = 0;
  // Where the time of this worker's steps went.
  client::StepTimes step_times;
};

// Functions that a run needs from its caller; called on the training thread.
struct Surroundings {
  // Monotonic time.
  std::function<absl::Time()> now;
  // Called before each step; an error ends the run.
  std::function<absl::Status()> may_go_on;
  // Prints a line of progress: "progress {json}".
  std::function<void(absl::string_view)> print;
};

// Trains as one worker of a run in which every worker calls this with the same options. Blocks
// until the last worker of all has trained. The group's first member reports progress about once a
// second. `config`: of the worker. Errors: those of worker/hybrid_step.h, of Dataset::Load and,
// with a target accuracy, of client/parameter_client.h.
absl::StatusOr<Outcome> Train(worker::Worker& worker, const worker::WorkerConfig& config,
                              const Options& options, const Surroundings& surroundings);

}  // namespace covey::fashion_mnist
