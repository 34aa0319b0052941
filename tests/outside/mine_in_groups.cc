// SPDX-License-Identifier: Apache-2.0

// Sums over its group, then trains one step through the servers: a program of workers in groups.

#include <iostream>
#include <vector>

#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace {

absl::Status Train(const covey::worker::WorkerConfig& config) {
  COVEY_ASSIGN_OR_RETURN(const auto worker, covey::worker::Worker::Join(config));
  std::vector<float> ones(4, 1);
  COVEY_RETURN_IF_ERROR(worker->group().AllReduce(ones).Wait());

  std::vector<float> values(4);
  std::vector<float> gradient(4, -1);
  covey::proto::TableSpec spec;
  spec.set_name("weights");
  spec.set_data_type(covey::proto::FLOAT32);
  spec.add_shape(4);
  spec.mutable_optimizer()->set_kind(covey::proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(covey::proto::Contract::BSP);
  COVEY_ASSIGN_OR_RETURN(const auto hybrid,
                         covey::worker::HybridStep::Create(
                             *worker, {{.table = spec, .values = values, .gradient = gradient}}));
  COVEY_RETURN_IF_ERROR(hybrid->Begin(1));
  COVEY_RETURN_IF_ERROR(hybrid->Submit(0));
  COVEY_RETURN_IF_ERROR(hybrid->Wait(0));
  COVEY_RETURN_IF_ERROR(hybrid->Finish());
  if (worker->rank() == 0) {
    std::cout << "result {\"sum\":" << ones[0] << ",\"value\":" << values[0] << "}\n";
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  covey::worker::WorkerConfig config;
  covey::ConfigFile options("mine_in_groups", "Adds up in a group, and trains one step.");
  config.AddTo(options);
  if (const auto code = options.LoadForMain(argc, argv)) return *code;
  covey::InitProcess("mine_in_groups");
  const absl::Status status = Train(config);
  if (!status.ok()) std::cerr << "mine_in_groups: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
