// SPDX-License-Identifier: Apache-2.0

// Trains a perceptron on Fashion-MNIST as one worker of a cluster; `covey run` starts any number of
// workers:
//   covey run --servers 2 --groups 2 --workers 2 -- fashion_mnist --contract buffered

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/step_times.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "worker/examples/fashion_mnist/options.h"
#include "worker/examples/fashion_mnist/train.h"
#include "worker/examples/worker_program.h"

namespace covey::fashion_mnist {
namespace {

void Print(absl::string_view line) { std::cout << line << std::endl; }

void PrintResult(const worker::Worker& worker, const Options& options, const Outcome& outcome) {
  const double seconds = absl::ToDoubleSeconds(outcome.duration);
  nlohmann::ordered_json json = {
      {"test_accuracy", outcome.test.accuracy},
      {"test_loss", outcome.test.loss},
      {"train_loss", outcome.training.loss},
      {"train_seconds", seconds},
      {"samples", outcome.samples},
      {"samples_per_second", static_cast<double>(outcome.samples) / seconds},
      {"contract", ContractName(options.contract)},
      {"groups", worker.groups()},
      {"workers", worker.size()},
      {"wire", WireFormatName(options.wire)},
      {"value_wire", WireFormatName(options.value_wire)}};
  const client::StepTimes& times = outcome.step_times;
  if (times.total() > 0) {
    json["step_times"] = {
        {"step_seconds", times.total()},    {"computation_seconds", times.computation},
        {"input_seconds", times.input},     {"group_seconds", times.group},
        {"servers_seconds", times.servers}, {"bottleneck", client::BottleneckOf(times)}};
    Print(client::DescribeStep(times));
  }
  if (options.measures_noise()) {
    json["steps"] = outcome.steps;
    json["batch"] = outcome.batch;
    json["noise_scale"] = nullptr;
    if (outcome.noise.has_value()) json["noise_scale"] = outcome.noise->scale();
  }
  if (options.target_accuracy > 0) {
    json["samples_to_target"] = nullptr;
    json["seconds_to_target"] = nullptr;
    if (outcome.target.has_value()) {
      json["samples_to_target"] = outcome.target->samples;
      json["seconds_to_target"] = absl::ToDoubleSeconds(outcome.target->duration);
    }
  }
  Print(absl::StrCat("result ", json.dump()));
}

absl::Status Run(worker::Worker& worker, const worker::WorkerConfig& config,
                 const Options& options) {
  DrainOnSignal drain(worker);
  COVEY_ASSIGN_OR_RETURN(const Outcome outcome,
                         Train(worker, config, options,
                               {.now = MonotonicNow,
                                .may_go_on = [&drain] { return drain.Pause(absl::ZeroDuration()); },
                                .print = Print}));
  if (outcome.is_speaker) PrintResult(worker, options, outcome);
  return absl::OkStatus();
}

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "fashion_mnist",
       .description = "Trains a perceptron on Fashion-MNIST as one worker of a cluster.",
       .add_options = [&options](ConfigFile& file) { options.AddTo(file); },
       .validate = [&options] { return options.Validate(); },
       .run = [&options](const worker::WorkerConfig& config,
                         worker::Worker& worker) { return Run(worker, config, options); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::fashion_mnist

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::fashion_mnist::Main(argc, argv);
}
