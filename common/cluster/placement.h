// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/table.pb.h"

namespace covey {

// A data loop that can hold shards.
struct ShardHome {
  Address address;
  uint32_t server_rank = 0;
  // Bytes that the loop holds already; and of those, the bytes and shards that it is the head of.
  uint64_t bytes = 0;
  uint64_t head_bytes = 0;
  uint64_t heads = 0;
};

struct PlacedShard {
  uint64_t first_element = 0;
  uint64_t element_count = 0;
  Address home;
};

// How many servers are to hold each shard of a table; there may be fewer.
uint32_t ReplicasWanted(const proto::TableSpec& spec);

// Largest shard in bytes of a table whose creator did not set it: four shards per data loop, so
// that loads can be balanced, within kShardBytesDefaultMin and -Max; a multiple of 64.
uint64_t AutomaticShardBytes(uint64_t table_bytes, size_t loops);

// The same of a sparse table, whose elements are its slots (common/table/key_slots.h): two shards
// per data loop, because each group pushes to all of them in each step.
uint64_t SparseShardBytes(size_t loops);

// How many shards of at most `shard_bytes` a table makes.
uint64_t ShardCount(uint64_t elements, uint64_t shard_bytes);

// The `shard_bytes` with which PlaceShards cuts a table as it was cut before, into shards of at
// most this many elements.
uint64_t ShardBytesOf(uint64_t elements_per_shard);

// Cuts a table of float32 into shards of nearly equal size, each at most `shard_bytes` and starting
// at a multiple of 64 bytes. The head of each shard goes to the loop with the least bytes +
// head_bytes. The shards that a loop heads count twice, because a head answers all requests and a
// follower only applies records. Ties go to the server with the smallest such sum, then to the one
// with the fewest heads, then to the lowest (server rank, loop). So two loops that start equal
// never differ by more than one shard.
//
// Pure; independent of the order of `homes`. Preconditions: elements > 0; shard_bytes a positive
// multiple of 64; homes not empty. O(shards * (log servers + loops per server)).
std::vector<PlacedShard> PlaceShards(uint64_t elements, uint64_t shard_bytes,
                                     std::vector<ShardHome> homes);

}  // namespace covey
