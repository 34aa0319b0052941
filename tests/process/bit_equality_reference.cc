// SPDX-License-Identifier: Apache-2.0

// Trains the problem of bit_equality_model.h for a group of ARGV[1] members in one process, without
// a cluster; sums in the order of algorithm ARGV[2], or of the ring.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <variant>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/base/check.h"
#include "common/cluster/placement.h"
#include "common/collective/algorithm.h"
#include "common/collective/plan.h"
#include "common/tensor/kernels.h"
#include "server/replication/table_rules.h"
#include "server/table/dense_shard.h"
#include "server/table/host_memory.h"
#include "server/table/table_memory.h"
#include "tests/process/bit_equality_model.h"
#include "worker/collective/reference_reduce.h"
#include "worker/layout/model_layout.h"

namespace covey {
namespace {

proto::Table TableOf(const proto::TableSpec& spec) {
  proto::Table table;
  *table.mutable_spec() = spec;
  for (const PlacedShard& placed : PlaceShards(spec.shape(0), spec.shard_bytes(), {ShardHome{}})) {
    proto::Shard& shard = *table.add_shards();
    shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
    shard.set_first_element(placed.first_element);
    shard.set_element_count(placed.element_count);
  }
  return table;
}

// The whole table as one shard: optimizers work by element, so the division changes nothing.
std::unique_ptr<server::DenseShard> Whole(const proto::Table& table, server::TableMemory& memory) {
  proto::Shard all;
  all.set_element_count(table.spec().shape(0));
  const auto rules = server::RulesOf(table, all);
  COVEY_CHECK(rules.ok());
  auto shard = server::DenseShard::Create(std::get<server::DenseShardConfig>(rules->shard), memory);
  COVEY_CHECK(shard.ok());
  return *std::move(shard);
}

void Train(uint32_t members, Algorithm algorithm) {
  BufferPool spares(0);
  server::HostMemory memory(spares);
  std::vector<proto::Table> tables;
  std::vector<const proto::Table*> pointers;
  for (const proto::TableSpec& spec : BitEqualityTables()) tables.push_back(TableOf(spec));
  for (const proto::Table& table : tables) pointers.push_back(&table);
  const worker::ModelLayout layout(pointers, members, worker::FusionLimits());
  const Plan plan({.algorithm = algorithm, .size = members, .paths = {}});
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto shard = Whole(tables[t], memory);
    for (uint64_t step = 1; step <= kBitEqualitySteps; ++step) {
      uint64_t samples = 0;
      std::vector<std::vector<float>> gradients;
      for (uint32_t member = 0; member < members; ++member) {
        samples += BitEqualitySamples(member, step);
        std::vector<float>& gradient = gradients.emplace_back(shard->element_count());
        BitEqualityGradient(member, step, shard->Values().As<float>(), gradient);
        Scale(gradient, static_cast<float>(BitEqualitySamples(member, step)));
      }
      const std::vector<float> sum = worker::ReferenceReduce(gradients, layout.parts_of(t), plan);
      if (samples > 0) COVEY_CHECK(shard->Apply(sum, samples).ok());
    }
    std::cout << BitEqualityLine(tables[t].spec().name(), shard->Values().As<float>()) << "\n";
  }
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) {
  const auto algorithm = covey::ParseAlgorithm(argc > 2 ? argv[2] : "ring");
  COVEY_CHECK(algorithm.ok());
  covey::Train(static_cast<uint32_t>(std::atoi(argv[1])), *algorithm);
  return 0;
}
