// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/examples/fashion_mnist/dataset.h"
#include "worker/examples/fashion_mnist/evaluate.h"
#include "worker/examples/fashion_mnist/options.h"
#include "worker/worker.h"

namespace covey::fashion_mnist {

// How a run ended.
struct Outcome {
  // Of the whole run, over all workers.
  uint64_t samples = 0;
  absl::Duration duration;
  // Samples of the whole run when the target accuracy was first seen; absent = it was not.
  std::optional<uint64_t> samples_to_target;
  // Of the final values, on the test split and on the first samples of the training split; only of
  // a speaker: one worker of the run, or of each group.
  bool is_speaker = false;
  Quality test;
  Quality training;
};

// What a run needs from its surroundings; called on the training thread.
struct Surroundings {
  // Monotonic time.
  std::function<absl::Time()> now;
  // Asked before each step; an error ends the run.
  std::function<absl::Status()> may_go_on;
  // A line for whoever watches: "progress {json}".
  std::function<void(absl::string_view)> print;
};

// Trains as one worker of a run in which every worker calls this with the same options. Blocks
// until the last worker of all has trained. The group's first member reports progress about once a
// second. Errors: those of worker/hybrid_step.h and of Dataset::Load.
absl::StatusOr<Outcome> Train(worker::Worker& worker, const Options& options,
                              const Surroundings& surroundings);

}  // namespace covey::fashion_mnist
