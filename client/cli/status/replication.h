// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "proto/view.pb.h"

namespace covey::cli {

// Compares the replicas that shards have with those that they should have. Pure.

// The state of a table's replication.
struct Replication {
  // The replicas that each shard should have: fewer than the table asks for when there are fewer
  // servers.
  uint32_t target = 1;
  uint32_t wanted = 1;
  uint32_t shards = 0;
  // Shards that have fewer, and shards that have none at all.
  uint32_t short_of = 0;
  uint32_t without = 0;
  // Replicas that are being filled.
  uint32_t joining = 0;

  bool is_whole() const { return short_of == 0; }
  // "degraded: 1 of 4 shards short of replicas, 1 joining".
  std::string Show() const;
};

// `servers`: how many may hold replicas.
Replication ReplicationOf(const proto::Table& table, uint32_t servers);
// Servers that may hold replicas.
uint32_t ServersStaying(const proto::ClusterView& view);
// "memory", "replicated 2".
std::string ShowDurability(const proto::TableSpec& spec);

}  // namespace covey::cli
