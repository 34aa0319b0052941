// SPDX-License-Identifier: Apache-2.0

// Counts on the servers: a program that only reads and writes parameters.

#include <iostream>
#include <vector>

#include "client/parameter_client.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "proto/table.pb.h"

namespace {

absl::Status Count(const covey::client::ClientConfig& config) {
  COVEY_ASSIGN_OR_RETURN(const auto client, covey::client::ParameterClient::Connect(config));
  covey::proto::TableSpec spec;
  spec.set_name("counters");
  spec.set_data_type(covey::proto::FLOAT32);
  spec.add_shape(4);
  spec.mutable_optimizer()->set_kind(covey::proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(covey::proto::Contract::ASYNC);
  COVEY_ASSIGN_OR_RETURN(const covey::client::Table table, client->CreateTable(spec));
  const std::vector<float> gradient(table.elements, -1);
  std::vector<float> values(table.elements);
  COVEY_RETURN_IF_ERROR(client->PushPull(table, gradient, values).Wait());
  std::cout << "result {\"counted\":" << values[0] << "}\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  covey::client::ClientConfig config;
  covey::ConfigFile options("mine", "Counts on the servers.");
  options.Add("scheduler", &config.scheduler, "HOST:PORT of the scheduler");
  options.Add("job", &config.job, "name of the job");
  if (const auto code = options.LoadForMain(argc, argv)) return *code;
  covey::InitProcess("mine");
  const absl::Status status = Count(config);
  if (!status.ok()) std::cerr << "mine: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
