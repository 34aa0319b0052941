// SPDX-License-Identifier: Apache-2.0
#include "client/table.h"

#include "absl/status/statusor.h"
#include "common/optimizer/definition.h"
#include "common/optimizer/optimizer.h"
#include "proto/view.pb.h"

namespace covey::client {
namespace {

// 0 for an optimizer that this version does not know.
size_t SlotsOf(const proto::Optimizer& spec) {
  const absl::StatusOr<OptimizerConfig> config = OptimizerFromProto(spec);
  if (!config.ok()) return 0;
  const auto optimizer = MakeOptimizer(*config);
  return optimizer.ok() ? static_cast<size_t>((*optimizer)->state_slots()) : 0;
}

}  // namespace

Table TableOf(const proto::Table& table) {
  Table reference{.id = TableId(table.id()), .name = table.spec().name()};
  if (table.spec().has_sparse()) {
    reference.width = table.spec().sparse().width();
    for (const proto::Shard& shard : table.shards()) {
      reference.shard_ends.push_back(shard.first_element() + shard.element_count());
    }
    return reference;
  }
  const proto::Shard& last = table.shards(table.shards_size() - 1);
  reference.elements = last.first_element() + last.element_count();
  const proto::Optimizer& optimizer = table.spec().optimizer();
  if (optimizer.kind() == proto::Optimizer::VECTORS) {
    reference.vectors = 1 + size_t{optimizer.vectors()};
  } else {
    reference.slots = SlotsOf(optimizer);
  }
  return reference;
}

}  // namespace covey::client
