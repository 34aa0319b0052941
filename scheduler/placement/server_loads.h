// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// The load of each ALIVE server of a view, and the best server for one more replica. Used to plan
// chains. A value; code that changes chains keeps it up to date. Deterministic.
class ServerLoads {
 public:
  struct Server {
    NodeId node;
    uint32_t rank = 0;
    std::string name = {};
    bool draining = false;
    // It gets no new replicas now.
    bool avoided = false;
    // Numbers of its host and rack; 0 = unknown.
    uint32_t host = 0;
    uint32_t rack = 0;
    // Bytes in each data loop, index = loop - 1; in all loops; and those of the shards that it
    // heads and that other servers hold, too.
    std::vector<uint64_t> loops = {};
    uint64_t bytes = 0;
    uint64_t head_bytes = 0;
    // Its replicas that are joining, and those that are about to leave.
    uint32_t joining = 0;
    uint32_t leaving = 0;

    bool is_usable() const { return !draining && !loops.empty(); }
    uint32_t LightestLoop() const;
  };

  // The servers without any shards. The host comes from labels, otherwise from Node.host.
  explicit ServerLoads(const proto::ClusterView& view);

  // Null when `node` is not an ALIVE server.
  Server* Find(uint64_t node);
  const Server* Find(uint64_t node) const;
  // In growing order of (rank, node).
  const std::vector<Server>& servers() const { return servers_; }
  std::vector<Server>& servers() { return servers_; }
  // Servers that are not draining.
  size_t usable() const { return usable_; }

  // Adds or removes a replica; no effect for nodes that are not ALIVE.
  void Add(const proto::Replica& replica, uint64_t bytes);
  void Remove(const proto::Replica& replica, uint64_t bytes);

  // How many of the servers in `others` share the host, and the rack, of a server that is none of
  // them.
  struct Nearness {
    uint32_t hosts = 0;
    uint32_t racks = 0;
    friend auto operator<=>(const Nearness&, const Nearness&) = default;
  };
  Nearness NearnessTo(const Server& server, std::span<const uint64_t> others) const;

  // The server for one more replica beside those on `others`: usable, not avoided, fewer than
  // `joining_max` joining ones, with the least (nearness, bytes, rank). Null when there is none.
  Server* Choose(std::span<const uint64_t> others, uint32_t joining_max);

 private:
  std::vector<Server> servers_;
  absl::flat_hash_map<uint64_t, size_t> index_;  // of the node; only looked up
  size_t usable_ = 0;
};

// Bytes of a shard's values: what placement balances.
inline uint64_t ShardBytes(const proto::Shard& shard) {
  return shard.element_count() * sizeof(float);
}

// Nodes in a chain.
std::vector<uint64_t> NodesOf(const proto::Shard& shard);

}  // namespace covey::scheduler
