// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/config.h"
#include "worker/examples/rows/shared_passes.h"
#include "worker/examples/wordnet/options.h"
#include "worker/examples/wordnet/ranking.h"
#include "worker/worker.h"

namespace covey::wordnet {

// The result of a run.
struct Outcome {
  size_t entities = 0;
  size_t training_facts = 0;
  // Questions trained, by all workers, and the time of all passes.
  uint64_t trained = 0;
  absl::Duration duration;
  // Of the last pass; 0 = untrained.
  double loss = 0;
  // Of the questions of all held-out facts, by relation.
  Ranking ranking = {};
};

// Trains and evaluates as one worker of a run in which every worker calls this with the same
// options. Rows of entities and relations live in two sparse tables. Blocks until the last question
// has been answered; all workers have the same result. `print` gets a line for each pass. Errors:
// those of worker/hybrid_step.h and client/parameter_client.h, ReadWordNet and MakeGraph.
absl::StatusOr<Outcome> Train(worker::Worker& worker, const worker::WorkerConfig& config,
                              const Options& options,
                              const examples::SharedPasses::Surroundings& surroundings,
                              const std::function<void(absl::string_view)>& print);

}  // namespace covey::wordnet
