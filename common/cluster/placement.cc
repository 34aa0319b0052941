// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/placement.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

constexpr uint64_t kAlignmentBytes = 64;
constexpr uint64_t kElementBytes = sizeof(float);
constexpr uint32_t kReplicasDefault = 2;

constexpr uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
constexpr uint64_t Align(uint64_t bytes) {
  return DivideUp(bytes, kAlignmentBytes) * kAlignmentBytes;
}

// Elements per shard, as equal as the alignment allows.
uint64_t ElementsPerShard(uint64_t elements, uint64_t shard_bytes) {
  COVEY_CHECK(elements > 0);
  COVEY_CHECK(shard_bytes > 0 && shard_bytes % kAlignmentBytes == 0);
  const uint64_t bytes = elements * kElementBytes;
  return Align(DivideUp(bytes, DivideUp(bytes, shard_bytes))) / kElementBytes;
}

uint64_t Load(const ShardHome& home) { return home.bytes + home.head_bytes; }

// One server's loops, sorted so that the least loaded is found first.
struct Server {
  std::vector<ShardHome> loops;
  uint64_t load = 0;
  uint64_t heads = 0;

  ShardHome& Lightest() {
    return *std::min_element(loops.begin(), loops.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(Load(a), a.heads, a.address.loop) <
             std::make_tuple(Load(b), b.heads, b.address.loop);
    });
  }
};

std::vector<Server> ByServer(std::vector<ShardHome> homes) {
  std::sort(homes.begin(), homes.end(), [](const ShardHome& a, const ShardHome& b) {
    return std::tie(a.server_rank, a.address) < std::tie(b.server_rank, b.address);
  });
  std::vector<Server> servers;
  for (const ShardHome& home : homes) {
    if (servers.empty() || servers.back().loops.front().address.node != home.address.node) {
      servers.emplace_back();
    }
    servers.back().loops.push_back(home);
    servers.back().load += Load(home);
    servers.back().heads += home.heads;
  }
  return servers;
}

}  // namespace

uint32_t ReplicasWanted(const proto::TableSpec& spec) {
  if (spec.durability() == proto::MEMORY) return 1;
  return spec.replicas() == 0 ? kReplicasDefault : spec.replicas();
}

uint64_t AutomaticShardBytes(uint64_t table_bytes, size_t loops) {
  const uint64_t wanted = table_bytes / (4 * std::max<size_t>(loops, 1));
  return Align(std::clamp<uint64_t>(wanted, kShardBytesDefaultMin, kShardBytesDefaultMax));
}

uint64_t SparseShardBytes(size_t loops) {
  return Align(DivideUp(kKeySlots * kElementBytes, 2 * std::max<size_t>(loops, 1)));
}

uint64_t ShardCount(uint64_t elements, uint64_t shard_bytes) {
  return DivideUp(elements, ElementsPerShard(elements, shard_bytes));
}

uint64_t ShardBytesOf(uint64_t elements_per_shard) {
  return Align(elements_per_shard * kElementBytes);
}

std::vector<PlacedShard> PlaceShards(uint64_t elements, uint64_t shard_bytes,
                                     std::vector<ShardHome> homes) {
  COVEY_CHECK(!homes.empty());
  std::vector<Server> servers = ByServer(std::move(homes));
  // Load of the lightest loop, then of the whole server, its heads, index.
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, size_t>;
  std::set<Key> by_load;
  const auto insert = [&](size_t i) {
    by_load.insert({Load(servers[i].Lightest()), servers[i].load, servers[i].heads, i});
  };
  for (size_t i = 0; i < servers.size(); ++i) insert(i);

  const uint64_t per_shard = ElementsPerShard(elements, shard_bytes);
  std::vector<PlacedShard> shards;
  for (uint64_t first = 0; first < elements; first += per_shard) {
    const uint64_t count = std::min(per_shard, elements - first);
    const uint64_t bytes = count * kElementBytes;
    const size_t index = std::get<3>(*by_load.begin());
    by_load.erase(by_load.begin());
    Server& server = servers[index];
    ShardHome& home = server.Lightest();
    shards.push_back({.first_element = first, .element_count = count, .home = home.address});
    home.bytes += bytes;
    home.head_bytes += bytes;
    ++home.heads;
    server.load += 2 * bytes;
    ++server.heads;
    insert(index);
  }
  return shards;
}

}  // namespace covey
