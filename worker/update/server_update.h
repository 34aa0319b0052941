// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/ids.h"
#include "common/tensor/wire_format.h"
#include "worker/layout/gradient_format.h"
#include "worker/layout/part_map.h"
#include "worker/update/part_update.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// Consecutive whole shards of one table, and their position within a part.
struct PartShards {
  TableId table;
  // "'hidden/weight'", for errors.
  std::string name;
  ShardIndex first_shard;
  std::vector<size_t> shards;  // elements of each
  PartRange elements;          // within the part
  size_t piece = 0;            // of the bucket (Bucket::pieces), which the table is
};

// An operation that reads the values of these shards.
inline client::Operation OperationOn(const PartShards& shards, std::span<float> values) {
  client::Operation operation;
  operation.table = shards.table;
  operation.first_shard = shards.first_shard;
  operation.shard_count = static_cast<uint32_t>(shards.shards.size());
  operation.values = values;
  return operation;
}

// The servers update: the part's shards are pushed to them, and the replies have the new values.
class ServerUpdate : public PartUpdate {
 public:
  ServerUpdate(ServerLink& link, std::vector<PartShards> shards, const GradientFormat& format,
               WireFormat value_format = WireFormat::kFloat32);

  void Apply(absl::Time now, PartStep step, Outbox& outbox) override;
  void Fetch(absl::Time now, PartStep step, Outbox& outbox) override;

 private:
  ServerLink& link_;
  const std::vector<PartShards> shards_;
  const GradientFormat format_;
  const WireFormat value_format_;
  std::vector<float> residual_;  // rounding errors of the part; empty = none are kept
};

}  // namespace covey::worker
