// SPDX-License-Identifier: Apache-2.0

// Creates a table with Adam and a schedule of the learning rate, or finds it, and pushes gradients
// to all of it. Push number K is the same in every table.
//   adam_client HOST:PORT JOB TABLE FIRST LAST      pushes number FIRST to LAST

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

// Several shards.
constexpr uint64_t kElements = 1'000'003;
constexpr uint64_t kSamples = 32;

covey::proto::TableSpec Spec(const std::string& name) {
  covey::proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(covey::proto::FLOAT32);
  spec.add_shape(kElements);
  spec.mutable_initializer()->set_kind(covey::proto::Initializer::NORMAL);
  spec.mutable_initializer()->set_b(1);
  spec.mutable_initializer()->set_seed(7);
  spec.mutable_optimizer()->set_kind(covey::proto::Optimizer::ADAM);
  covey::proto::LearningRate& rate = *spec.mutable_learning_rate();
  rate.set_base(0.01);
  rate.set_warmup_samples(20 * kSamples);
  rate.set_decay(covey::proto::LearningRate::COSINE);
  rate.set_decay_samples(1000 * kSamples);
  spec.mutable_contract()->set_kind(covey::proto::Contract::ASYNC);
  return spec;
}

absl::Status PushAll(const std::vector<std::string>& words) {
  uint64_t first = 0;
  uint64_t last = 0;
  if (words.size() != 5 || !absl::SimpleAtoi(words[3], &first) ||
      !absl::SimpleAtoi(words[4], &last)) {
    return absl::InvalidArgumentError("usage: adam_client HOST:PORT JOB TABLE FIRST LAST");
  }
  COVEY_ASSIGN_OR_RETURN(const auto client, covey::client::ParameterClient::Connect(
                                                {.scheduler = words[0], .job = words[1]}));
  COVEY_ASSIGN_OR_RETURN(const covey::client::Table table, client->CreateTable(Spec(words[2])));
  std::vector<float> gradient(table.elements);
  for (uint64_t push = first; push <= last; ++push) {
    for (uint64_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = static_cast<float>((7 * i + 13 * push) % 101) / 16 - 3;
    }
    COVEY_RETURN_IF_ERROR(client->Push(table, gradient, {.samples = kSamples}).Wait());
  }
  return client->Flush(absl::Seconds(30));
}

}  // namespace

int main(int argc, char** argv) {
  covey::InitProcess("adam_client");
  const absl::Status status = PushAll({argv + 1, argv + argc});
  if (!status.ok()) covey::LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
