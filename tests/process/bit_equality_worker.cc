// SPDX-License-Identifier: Apache-2.0

// Trains the problem of bit_equality_model.h as one member of the only group, by the public API.

#include <iostream>
#include <memory>
#include <vector>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "tests/process/bit_equality_model.h"
#include "worker/config.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey {
namespace {

absl::Status Train(const worker::WorkerConfig& config, uint32_t replicas, absl::Duration pause) {
  COVEY_ASSIGN_OR_RETURN(const auto worker, worker::Worker::Join(config));
  std::vector<proto::TableSpec> tables = BitEqualityTables();
  if (replicas > 1) {
    for (proto::TableSpec& table : tables) {
      table.set_durability(proto::REPLICATED);
      table.set_replicas(replicas);
    }
  }
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;
  std::vector<worker::HybridStep::Tensor> tensors;
  for (const proto::TableSpec& table : tables) {
    values.emplace_back(table.shape(0));
    gradients.emplace_back(table.shape(0));
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    tensors.push_back({.table = tables[t], .values = values[t], .gradient = gradients[t]});
  }
  COVEY_ASSIGN_OR_RETURN(const auto hybrid, worker::HybridStep::Create(*worker, tensors));
  const uint32_t member = worker->group().rank();
  for (uint64_t step = 1; step <= kBitEqualitySteps; ++step) {
    LogInfo("step", {{"number", step}});
    WaitForTermination(pause);
    COVEY_RETURN_IF_ERROR(hybrid->Begin(BitEqualitySamples(member, step)));
    for (size_t t = 0; t < tables.size(); ++t) {
      COVEY_RETURN_IF_ERROR(hybrid->Wait(t));
      BitEqualityGradient(member, step, values[t], gradients[t]);
      COVEY_RETURN_IF_ERROR(hybrid->Submit(t));
    }
  }
  COVEY_RETURN_IF_ERROR(hybrid->Finish());
  for (size_t t = 0; t < tables.size(); ++t) {
    std::cout << BitEqualityLine(tables[t].name(), values[t]) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace covey

int main(int, char** argv) {
  covey::InitProcess("");
  covey::worker::WorkerConfig config;
  covey::ConfigFile environment("bit_equality_worker", "Which cluster to join.");
  uint32_t replicas = 1;
  absl::Duration pause = absl::ZeroDuration();
  config.AddTo(environment);
  environment.Add("replicas", &replicas, "of each table");
  environment.Add("pause", &pause, "before each step");
  if (const auto code = environment.LoadForMain(1, argv)) return *code;
  const absl::Status status = covey::Train(config, replicas, pause);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
