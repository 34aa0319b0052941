// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/row_residuals.h"
#include "worker/config.h"
#include "worker/examples/factorization/options.h"
#include "worker/examples/rows/shared_passes.h"
#include "worker/worker.h"

namespace covey::factorization {

// The result of a run.
struct Outcome {
  size_t training_samples = 0;
  size_t test_samples = 0;
  // Of the training samples, each once; and how many of their weights are zero.
  size_t features = 0;
  size_t zero_weights = 0;
  // Samples trained, by all workers, and the time of all passes.
  uint64_t trained = 0;
  absl::Duration duration;
  // Of the last pass; 0 = untrained.
  double loss = 0;
  // Of the test samples.
  double auc = 0;
  double log_loss = 0;
  // What FTRL minimizes, for each sample that it has trained with: the log loss of the training
  // samples, and l1 * |weights| + l2 / 2 * weights^2 divided by all passes' samples. 0 = not
  // measured.
  double objective = 0;
  // Of both tables: sent and received by this worker in training.
  uint64_t row_bytes = 0;
  // Of this worker's pushes, through the filter.
  client::RowResiduals::Counts weights_filtered;
  client::RowResiduals::Counts factors_filtered;
};

// Trains and measures as one worker of a run in which every worker calls this with the same
// options. Weights and factors of features live in two sparse tables. Blocks until the last sample
// has been scored; all workers have the same result. `print` gets a line for each pass. Errors:
// those of worker/hybrid_step.h and client/parameter_client.h, and of reading the data.
absl::StatusOr<Outcome> Train(worker::Worker& worker, const worker::WorkerConfig& config,
                              const Options& options,
                              const examples::SharedPasses::Surroundings& surroundings,
                              const std::function<void(absl::string_view)>& print);

}  // namespace covey::factorization
