// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/rows/tally.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::examples {

proto::TableSpec TallySpec(absl::string_view name, size_t size) {
  proto::TableSpec spec;
  spec.set_name(std::string(name));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(size);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  spec.mutable_learning_rate()->set_base(1);
  return spec;
}

absl::StatusOr<Tally> Tally::Open(client::ParameterClient& client, const proto::TableSpec& spec) {
  COVEY_ASSIGN_OR_RETURN(client::Table table, client.CreateTable(spec));
  return Tally(client, std::move(table));
}

absl::Status Tally::Add(std::span<const double> sums) {
  COVEY_CHECK(sums.size() == table_.elements);
  std::vector<float> gradient;
  for (const double sum : sums) gradient.push_back(-static_cast<float>(sum));
  return client_->Push(table_, gradient).Wait();
}

absl::StatusOr<std::vector<double>> Tally::Read() {
  std::vector<float> values(table_.elements);
  COVEY_RETURN_IF_ERROR(client_->Pull(table_, std::span<float>(values)).Wait());
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace covey::examples
