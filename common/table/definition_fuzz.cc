// SPDX-License-Identifier: Apache-2.0
// Tables as clients ask for them.
#include "common/table/definition.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  proto::TableSpec dense;
  dense.set_name("weights");
  dense.set_data_type(proto::FLOAT32);
  dense.add_shape(5);
  dense.add_shape(10);
  dense.mutable_contract()->set_kind(proto::Contract::BUFFERED);
  dense.mutable_learning_rate()->set_base(0.5);
  proto::TableSpec local = dense;
  local.mutable_contract()->set_kind(proto::Contract::LOCAL);
  local.mutable_contract()->set_local_steps(8);
  local.mutable_inner_optimizer()->set_kind(proto::Optimizer::ADAMW);
  local.mutable_inner_learning_rate()->set_base(0.25);
  return {dense.SerializeAsString(), local.SerializeAsString()};
}

bool FuzzOne(std::span<const uint8_t> input) {
  proto::TableSpec spec;
  if (!spec.ParseFromArray(input.data(), static_cast<int>(input.size()))) return false;
  const auto definition = TableDefinition::Parse(spec);
  if (!definition.ok()) {
    COVEY_CHECK(definition.status().code() == absl::StatusCode::kInvalidArgument);
    COVEY_CHECK(!definition.status().message().empty());
    return false;
  }
  COVEY_CHECK(definition->elements > 0);
  COVEY_CHECK(!definition->sparse || definition->sparse->width > 0);
  return true;
}

}  // namespace covey
