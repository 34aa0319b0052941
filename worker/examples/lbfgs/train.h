// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/config.h"
#include "worker/examples/lbfgs/options.h"
#include "worker/worker.h"

namespace covey::lbfgs {

// What worker 0 has found.
struct Outcome {
  uint64_t iterations = 0;
  uint64_t evaluations = 0;
  double objective = 0;
  double gradient_norm = 0;
  // Of worker 0 as the minimizer; in an iteration of one evaluation after the history is full, and
  // the most of any.
  uint64_t bytes_per_iteration = 0;
  uint64_t bytes_max = 0;
  // The same in one process: the relative difference of the objectives, and the largest difference
  // of a weight.
  uint64_t iterations_here = 0;
  double objective_here = 0;
  double objective_difference = 0;
  double weight_difference = 0;
};

// Minimizes on the servers, as one of the workers, all of which push gradients of their parts of
// the samples; worker 0 is the minimizer, too, and solves the problem again by itself at the end.
// Nothing: this is another worker. Errors are those of Worker and ParameterClient.
absl::StatusOr<std::optional<Outcome>> Train(worker::Worker& worker,
                                             const worker::WorkerConfig& config,
                                             const Options& options,
                                             const std::function<void(absl::string_view)>& print);

}  // namespace covey::lbfgs
