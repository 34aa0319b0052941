// SPDX-License-Identifier: Apache-2.0

// Sums over the members of a group repeatedly, to measure the time and check the result.
//   covey run --workers 4 -- all_reduce --bytes 8MiB

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "worker/examples/all_reduce/measure.h"
#include "worker/examples/worker_program.h"

namespace covey::all_reduce {
namespace {

absl::Status PrintResult(const worker::Group& group, const worker::WorkerConfig& config,
                         const Options& options, const Outcome& outcome) {
  COVEY_ASSIGN_OR_RETURN(const worker::Forecast forecast,
                         group.PredictAllReduce(options.bytes / sizeof(float) / options.tensors));
  const double seconds = absl::ToDoubleSeconds(outcome.Median());
  nlohmann::ordered_json each = nlohmann::ordered_json::array();
  for (const absl::Duration duration : outcome.durations) {
    each.push_back(absl::ToDoubleSeconds(duration));
  }
  const nlohmann::ordered_json json = {
      {"seconds", seconds},
      {"seconds_each", std::move(each)},
      {"bytes", options.bytes},
      {"tensors", options.tensors},
      {"bytes_per_second", static_cast<double>(options.bytes) / seconds},
      {"error_max", outcome.error_max},
      {"collective", AlgorithmName(config.collective)},
      {"algorithm", AlgorithmName(forecast.algorithm)},
      {"predicted_seconds", absl::ToDoubleSeconds(forecast.duration)},
      {"wire", WireFormatName(config.collective_wire)},
      {"group", group.id().value()},
      {"members", group.size()}};
  std::cout << absl::StrCat("result ", json.dump()) << std::endl;
  return absl::OkStatus();
}

absl::Status Run(const worker::WorkerConfig& config, const Options& options,
                 worker::Worker& worker) {
  COVEY_ASSIGN_OR_RETURN(const Outcome outcome, Measure(worker.group(), options, MonotonicNow,
                                                        [] { std::cout << "warm" << std::endl; }));
  // The members end together; otherwise a late one would find the others gone.
  COVEY_RETURN_IF_ERROR(worker.Barrier("all_reduce/measured", config.cluster.operation_deadline));
  if (worker.group().rank() != 0) return absl::OkStatus();
  return PrintResult(worker.group(), config, options, outcome);
}

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "all_reduce",
       .description = "Sums over the members of a group repeatedly, to measure the time.",
       .add_options = [&options](ConfigFile& file) { options.AddTo(file); },
       .validate = [&options] { return options.Validate(); },
       .run = [&options](const worker::WorkerConfig& config,
                         worker::Worker& worker) { return Run(config, options, worker); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::all_reduce

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::all_reduce::Main(argc, argv);
}
