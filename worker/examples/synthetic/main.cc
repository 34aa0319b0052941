// SPDX-License-Identifier: Apache-2.0

// Simulates training, to measure its speed: computation is a wait, so that a laptop can run many
// workers, some of them slow:
//   covey run --groups 2 --workers 4 -- synthetic --slow 3:5 --contract buffered

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/step_times.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "worker/examples/synthetic/options.h"
#include "worker/examples/synthetic/train.h"
#include "worker/examples/worker_program.h"

namespace covey::synthetic {
namespace {

void Print(absl::string_view line) { std::cout << line << std::endl; }

nlohmann::ordered_json WorkerJson(size_t rank, const Figures& worker) {
  return {{"rank", rank},
          {"group", worker.group},
          {"steps", worker.steps},
          {"samples", worker.samples},
          {"seconds", worker.seconds},
          {"compute_seconds", worker.compute_seconds}};
}

// A group is as fast as its slowest member, and has trained the samples of all.
nlohmann::ordered_json GroupsJson(const std::vector<Figures>& workers) {
  struct Sum {
    uint64_t steps = 0, samples = 0;
    double seconds = 0;
  };
  std::map<uint32_t, Sum> sums;
  for (const Figures& worker : workers) {
    // The group left the worker out, so it has no figures.
    if (worker.steps == 0) continue;
    Sum& sum = sums[worker.group];
    sum.steps = std::max(sum.steps, worker.steps);
    sum.samples += worker.samples;
    sum.seconds = std::max(sum.seconds, worker.seconds);
  }
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const auto& [id, sum] : sums) {
    groups.push_back({{"group", id},
                      {"steps_per_second", static_cast<double>(sum.steps) / sum.seconds},
                      {"samples_per_second", static_cast<double>(sum.samples) / sum.seconds}});
  }
  return groups;
}

void PrintResult(const worker::Worker& worker, const Options& options, const Outcome& outcome) {
  nlohmann::ordered_json workers = nlohmann::ordered_json::array();
  double seconds = 0;
  uint64_t samples = 0;
  for (size_t rank = 0; rank < outcome.workers.size(); ++rank) {
    workers.push_back(WorkerJson(rank, outcome.workers[rank]));
    seconds = std::max(seconds, outcome.workers[rank].seconds);
    samples += outcome.workers[rank].samples;
  }
  nlohmann::ordered_json groups = GroupsJson(outcome.workers);
  double steps_per_second = 0;
  for (const auto& group : groups) steps_per_second += group["steps_per_second"].get<double>();
  const nlohmann::ordered_json json = {
      {"steps_per_second", steps_per_second},
      {"samples_per_second", static_cast<double>(samples) / seconds},
      {"seconds", seconds},
      {"distance", outcome.distance},
      {"model_bytes", options.tensors * options.tensor_kib * 1024},
      {"contract", ContractName(options.contract)},
      {"wire", WireFormatName(options.wire)},
      {"value_wire", WireFormatName(options.value_wire)},
      {"groups", worker.groups()},
      {"workers", worker.size()},
      {"by_group", std::move(groups)},
      {"by_worker", std::move(workers)}};
  if (outcome.step_times.total() > 0) Print(client::DescribeStep(outcome.step_times));
  Print(absl::StrCat("result ", json.dump()));
}

absl::Status Run(const worker::WorkerConfig& config, const Options& options,
                 worker::Worker& worker) {
  DrainOnSignal drain(worker);
  COVEY_ASSIGN_OR_RETURN(
      const Outcome outcome,
      Train(worker, config, options,
            {.now = MonotonicNow,
             .pause = [&drain](absl::Duration time) { return drain.Pause(time); },
             .print = Print}));
  if (!outcome.workers.empty()) PrintResult(worker, options, outcome);
  return absl::OkStatus();
}

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "synthetic",
       .description = "Simulates training, to measure the speed of a cluster.",
       .add_options = [&options](ConfigFile& file) { options.AddTo(file); },
       .validate = [&options] { return options.Validate(); },
       .run = [&options](const worker::WorkerConfig& config,
                         worker::Worker& worker) { return Run(config, options, worker); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::synthetic

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::synthetic::Main(argc, argv);
}
