// SPDX-License-Identifier: Apache-2.0

// A client that comes, uses a table of its own, and leaves: creates the table, pushes, checks its
// values, drops it; and so again, with tables TABLE/1, TABLE/2, ...
//   table_visitor HOST:PORT JOB TABLE TIMES

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/parameter_client.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"
#include "proto/table.pb.h"

namespace {

constexpr uint64_t kElements = 1 << 16;
constexpr int kPushes = 10;

absl::Status UseTable(covey::client::ParameterClient& client, const std::string& name) {
  covey::proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(covey::proto::FLOAT32);
  spec.add_shape(kElements);
  spec.set_shard_bytes(kElements);
  spec.mutable_optimizer()->set_kind(covey::proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(covey::proto::Contract::ASYNC);
  spec.set_durability(covey::proto::REPLICATED);
  spec.set_replicas(2);
  COVEY_ASSIGN_OR_RETURN(const covey::client::Table table, client.CreateTable(spec));
  const std::vector<float> gradient(table.elements, -1);
  for (int push = 0; push < kPushes; ++push) {
    COVEY_RETURN_IF_ERROR(client.Push(table, gradient).Wait());
  }
  std::vector<float> values(table.elements);
  COVEY_RETURN_IF_ERROR(client.Pull(table, values).Wait());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != kPushes) {
      return absl::DataLossError(absl::StrCat("element ", i, " of ", name, " is ", values[i],
                                              " after ", kPushes, " pushes"));
    }
  }
  return client.DropTable(name);
}

absl::Status Visit(const std::string& scheduler, const std::string& job, const std::string& table,
                   int times) {
  COVEY_ASSIGN_OR_RETURN(const auto client, covey::client::ParameterClient::Connect(
                                                {.scheduler = scheduler, .job = job}));
  for (int time = 1; time <= times; ++time) {
    COVEY_RETURN_IF_ERROR(UseTable(*client, absl::StrCat(table, "/", time)));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  covey::InitProcess("table_visitor");
  int times = 0;
  const absl::Status status =
      argc == 5 && absl::SimpleAtoi(argv[4], &times)
          ? Visit(argv[1], argv[2], argv[3], times)
          : absl::InvalidArgumentError("usage: table_visitor HOST:PORT JOB TABLE TIMES");
  if (!status.ok()) covey::LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
