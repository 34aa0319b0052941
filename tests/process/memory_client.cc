// SPDX-License-Identifier: Apache-2.0

// Creates a table of the given number of MiB with momentum and pushes gradients to all of it, so
// that a test can measure the servers' memory.
//   memory_client HOST:PORT JOB MIB

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/parameter_client.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"
#include "proto/table.pb.h"

namespace {

constexpr int kPushes = 3;

absl::Status Fill(const std::string& scheduler, const std::string& job, uint64_t mebibytes) {
  COVEY_ASSIGN_OR_RETURN(const auto client, covey::client::ParameterClient::Connect(
                                                {.scheduler = scheduler, .job = job}));
  covey::proto::TableSpec spec;
  spec.set_name("large");
  spec.set_data_type(covey::proto::FLOAT32);
  spec.add_shape((mebibytes << 20) / sizeof(float));
  spec.mutable_optimizer()->set_kind(covey::proto::Optimizer::MOMENTUM);
  spec.mutable_optimizer()->set_momentum(0.5);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(covey::proto::Contract::ASYNC);
  COVEY_ASSIGN_OR_RETURN(const covey::client::Table table, client->CreateTable(spec));

  // Gradients of -1 change a value by 1, then 1.5, then 1.75.
  std::vector<float> gradient(table.elements, -1);
  for (int i = 0; i < kPushes; ++i) {
    COVEY_RETURN_IF_ERROR(client->Push(table, gradient, {.deadline = absl::Minutes(5)}).Wait());
  }
  std::vector<float>& values = gradient;
  COVEY_RETURN_IF_ERROR(client->Pull(table, values, {.deadline = absl::Minutes(5)}).Wait());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 4.25F) {
      return absl::InternalError(absl::StrCat("element ", i, " is ", values[i], ", not 4.25"));
    }
  }
  covey::LogInfo("filled", {{"mebibytes", mebibytes}});
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  covey::InitProcess("memory_client");
  uint64_t mebibytes = 0;
  const bool understood = argc == 4 && absl::SimpleAtoi(argv[3], &mebibytes);
  const absl::Status status =
      understood ? Fill(argv[1], argv[2], mebibytes)
                 : absl::InvalidArgumentError("usage: memory_client HOST:PORT JOB MIB");
  if (!status.ok()) covey::LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
