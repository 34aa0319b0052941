// SPDX-License-Identifier: Apache-2.0

// Logistic regression by L-BFGS whose vectors stay on the servers: workers push gradients, and
// worker 0 sends functions and queries. Prints the bytes of each iteration, and how far the result
// is from that of one process.
//   covey run --servers 2 --groups 3 -- lbfgs --features 1000000

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "worker/examples/lbfgs/options.h"
#include "worker/examples/lbfgs/train.h"
#include "worker/examples/worker_program.h"

namespace covey::lbfgs {
namespace {

void Print(absl::string_view line) { std::cout << line << std::endl; }

void PrintResult(const worker::Worker& worker, const Options& options, const Outcome& outcome) {
  const nlohmann::ordered_json json = {{"features", options.size.features},
                                       {"samples", options.size.samples},
                                       {"iterations", outcome.iterations},
                                       {"evaluations", outcome.evaluations},
                                       {"objective", outcome.objective},
                                       {"gradient_norm", outcome.gradient_norm},
                                       {"bytes_per_iteration", outcome.bytes_per_iteration},
                                       {"bytes_max", outcome.bytes_max},
                                       {"iterations_here", outcome.iterations_here},
                                       {"objective_here", outcome.objective_here},
                                       {"objective_difference", outcome.objective_difference},
                                       {"weight_difference", outcome.weight_difference},
                                       {"workers", worker.size()}};
  Print(absl::StrCat("result ", json.dump()));
}

absl::Status Run(const worker::WorkerConfig& config, const Options& options,
                 worker::Worker& worker) {
  COVEY_ASSIGN_OR_RETURN(const std::optional<Outcome> outcome,
                         Train(worker, config, options, Print));
  if (outcome) PrintResult(worker, options, *outcome);
  return absl::OkStatus();
}

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "lbfgs",
       .description = "Logistic regression by L-BFGS as one worker of a cluster, with functions "
                      "that the servers compute.",
       .add_options = [&options](ConfigFile& file) { options.AddTo(file); },
       .validate = [&options] { return options.Validate(); },
       .run = [&options](const worker::WorkerConfig& config,
                         worker::Worker& worker) { return Run(config, options, worker); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::lbfgs

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::lbfgs::Main(argc, argv);
}
