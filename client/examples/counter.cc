// SPDX-License-Identifier: Apache-2.0

// Counts across runs: every run of this program adds one to each element of a shared table.
//   counter HOST:PORT JOB [TLS]    (a running scheduler, see `covey run`; the folder of a client's
//                                  certificate, where the scheduler has --tls)

#include <iostream>
#include <vector>

#include "client/parameter_client.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"
#include "proto/table.pb.h"

namespace {

absl::Status Count(const covey::client::ClientConfig& cluster) {
  COVEY_ASSIGN_OR_RETURN(const auto client, covey::client::ParameterClient::Connect(cluster));

  covey::proto::TableSpec spec;
  spec.set_name("counters");
  spec.set_data_type(covey::proto::FLOAT32);
  spec.add_shape(4);
  spec.mutable_optimizer()->set_kind(covey::proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(covey::proto::Contract::ASYNC);
  COVEY_ASSIGN_OR_RETURN(const covey::client::Table table, client->CreateTable(spec));

  // SGD subtracts the gradient, so -1 adds one; applied exactly once however often it is sent.
  const std::vector<float> gradient(table.elements, -1);
  std::vector<float> values(table.elements);
  COVEY_RETURN_IF_ERROR(client->PushPull(table, gradient, values).Wait());
  std::cout << "counted " << values[0] << " times\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  covey::InitProcess("counter");
  const absl::Status status =
      argc == 3 || argc == 4
          ? Count({.scheduler = argv[1], .job = argv[2], .tls = argc == 4 ? argv[3] : ""})
          : absl::InvalidArgumentError("usage: counter HOST:PORT JOB [TLS]");
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
