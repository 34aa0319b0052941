// SPDX-License-Identifier: Apache-2.0

// A member of one of two groups, under any contract, whose values show how many steps of each group
// they contain. Even elements belong to one group and odd ones to the other. A step of a group adds
// 1 to each of its elements, once it is part of an update.
//
// Under bsp, buffered and local:h an update is the mean of two groups, weighted by samples, so each
// group's gradient counts twice. A step in which a member dies has fewer samples: its own group's
// elements then grow by less than 1, and the other group's by as much more.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "worker/config.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey {
namespace {

constexpr uint64_t kElements = 4096;
constexpr uint64_t kShards = 4;
constexpr uint64_t kGroups = 2;
// Of a step of a group, whatever the number of its members.
constexpr uint64_t kSamples = 4;

struct Options {
  std::string contract = "bsp";
  uint32_t replicas = 2;
  absl::Duration pause = absl::Milliseconds(10);
  // Once the file is there, it has the number of the last step.
  std::string last_step_file;
};

proto::TableSpec TableOf(const Options& options, const Contract& contract) {
  proto::TableSpec spec;
  spec.set_name("contract");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(kElements);
  spec.set_shard_bytes(kElements / kShards * sizeof(float));
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  if (contract.kind == Contract::Kind::kLocal) {
    spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
    spec.mutable_inner_learning_rate()->set_base(1);
  }
  *spec.mutable_contract() = ContractToProto(contract);
  spec.set_durability(options.replicas > 1 ? proto::REPLICATED : proto::MEMORY);
  if (options.replicas > 1) spec.set_replicas(options.replicas);
  return spec;
}

// 0 = not known yet.
uint64_t LastStep(const std::string& path) {
  uint64_t step = 0;
  std::ifstream(path) >> step;
  return step;
}

// Logs the least and the largest of the elements of each group.
void LogValues(const std::vector<float>& values) {
  for (uint64_t group = 0; group < kGroups; ++group) {
    float least = values[group], most = values[group];
    for (uint64_t i = group; i < kElements; i += kGroups) {
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    LogInfo("counted",
            {{"group", group}, {"least", absl::StrCat(least)}, {"most", absl::StrCat(most)}});
  }
}

absl::Status Train(const worker::WorkerConfig& config, const Options& options) {
  COVEY_ASSIGN_OR_RETURN(const Contract contract, ParseContract(options.contract));
  COVEY_ASSIGN_OR_RETURN(const auto worker, worker::Worker::Join(config));
  std::vector<float> values(kElements);
  std::vector<float> gradient(kElements);
  COVEY_ASSIGN_OR_RETURN(
      const auto hybrid,
      worker::HybridStep::Create(
          *worker,
          {{.table = TableOf(options, contract), .values = values, .gradient = gradient}}));
  const uint64_t group = worker->group().id().value() % kGroups;
  const float term = contract.AppliesOnArrival() ? -1.0f : -static_cast<float>(kGroups);
  for (uint64_t step = 0, last = 0; last == 0 || step < last;
       last = LastStep(options.last_step_file)) {
    // It is killed, and never asked to leave.
    WaitForTermination(options.pause);
    COVEY_ASSIGN_OR_RETURN(const uint64_t samples, hybrid->SamplesFor(kSamples));
    COVEY_RETURN_IF_ERROR(hybrid->Begin(samples));
    for (uint64_t i = 0; i < kElements; ++i) gradient[i] = i % kGroups == group ? term : 0;
    COVEY_RETURN_IF_ERROR(hybrid->Submit(0));
    COVEY_RETURN_IF_ERROR(hybrid->Wait(0));
    COVEY_ASSIGN_OR_RETURN(step, hybrid->step());
    hybrid->Report(0);
    LogInfo("step", {{"group", group}, {"number", step}});
  }
  COVEY_RETURN_IF_ERROR(hybrid->Finish());
  LogInfo("trained");
  // The test says when all groups have.
  WaitForTermination();
  COVEY_RETURN_IF_ERROR(hybrid->Refresh());
  LogValues(values);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  InitProcess("contract_worker");
  worker::WorkerConfig config;
  Options chosen;
  ConfigFile options("contract_worker", "Counts the steps of two groups under any contract.");
  config.AddTo(options);
  options.Add("contract", &chosen.contract, "of the table");
  options.Add("replicas", &chosen.replicas, "of the table");
  options.Add("pause", &chosen.pause, "between two steps");
  options.Add("last-step-file", &chosen.last_step_file, "a file that will have the last step");
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  const absl::Status status = Train(config, chosen);
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
