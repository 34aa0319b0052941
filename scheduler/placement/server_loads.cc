// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/server_loads.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/topology.h"

namespace covey::scheduler {
namespace {

// Assigns numbers to names, from 1; "" = 0.
class Numbers {
 public:
  uint32_t Of(const std::string& name) {
    if (name.empty()) return 0;
    return numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size()) + 1).first->second;
  }

 private:
  std::map<std::string, uint32_t> numbers_;
};

}  // namespace

uint32_t ServerLoads::Server::LightestLoop() const {
  return 1 + static_cast<uint32_t>(std::min_element(loops.begin(), loops.end()) - loops.begin());
}

ServerLoads::ServerLoads(const proto::ClusterView& view) {
  Numbers hosts;
  Numbers racks;
  for (const proto::Node& node : view.nodes()) {
    if (node.role() != proto::SERVER || node.state() != proto::Node::ALIVE) continue;
    const TopologyPath path = ParseTopologyPath(node.labels());
    const std::string rack = path.rack().empty() ? "" : absl::StrCat(path.zone(), "/", path.rack());
    const std::string host =
        path.host().empty() ? node.host() : absl::StrCat(rack, "/", path.host());
    const size_t loops = static_cast<size_t>(std::max(0, node.endpoints_size() - 1));
    servers_.push_back({.node = NodeId(node.id()),
                        .rank = node.rank(),
                        .name = node.name(),
                        .draining = node.draining(),
                        .host = hosts.Of(host),
                        .rack = racks.Of(rack),
                        .loops = std::vector<uint64_t>(loops, 0)});
  }
  std::sort(servers_.begin(), servers_.end(), [](const Server& a, const Server& b) {
    return std::tie(a.rank, a.node) < std::tie(b.rank, b.node);
  });
  for (size_t i = 0; i < servers_.size(); ++i) index_.emplace(servers_[i].node.value(), i);
  usable_ = static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(),
                                              [](const Server& s) { return s.is_usable(); }));
}

ServerLoads::Server* ServerLoads::Find(uint64_t node) {
  return const_cast<Server*>(std::as_const(*this).Find(node));
}

const ServerLoads::Server* ServerLoads::Find(uint64_t node) const {
  const auto at = index_.find(node);
  return at == index_.end() ? nullptr : &servers_[at->second];
}

void ServerLoads::Add(const proto::Replica& replica, uint64_t bytes) {
  Server* server = Find(replica.node());
  if (server == nullptr) return;
  server->bytes += bytes;
  server->joining += replica.joining() ? 1 : 0;
  if (replica.loop() >= 1 && replica.loop() <= server->loops.size()) {
    server->loops[replica.loop() - 1] += bytes;
  }
}

void ServerLoads::Remove(const proto::Replica& replica, uint64_t bytes) {
  Server* server = Find(replica.node());
  if (server == nullptr) return;
  server->bytes -= bytes;
  server->joining -= replica.joining() ? 1 : 0;
  if (replica.loop() >= 1 && replica.loop() <= server->loops.size()) {
    server->loops[replica.loop() - 1] -= bytes;
  }
}

ServerLoads::Nearness ServerLoads::NearnessTo(const Server& server,
                                              std::span<const uint64_t> others) const {
  Nearness nearness;
  for (const uint64_t other : others) {
    const Server* holder = Find(other);
    if (holder == nullptr || holder == &server) continue;
    nearness.hosts += server.host != 0 && server.host == holder->host ? 1 : 0;
    nearness.racks += server.rack != 0 && server.rack == holder->rack ? 1 : 0;
  }
  return nearness;
}

ServerLoads::Server* ServerLoads::Choose(std::span<const uint64_t> others, uint32_t joining_max) {
  Server* best = nullptr;
  Nearness best_nearness;
  for (Server& server : servers_) {
    if (!server.is_usable() || server.avoided || server.joining >= joining_max ||
        std::find(others.begin(), others.end(), server.node.value()) != others.end()) {
      continue;
    }
    const Nearness nearness = NearnessTo(server, others);
    if (best == nullptr ||
        std::tie(nearness, server.bytes) < std::tie(best_nearness, best->bytes)) {
      best = &server;
      best_nearness = nearness;
    }
  }
  return best;
}

std::vector<uint64_t> NodesOf(const proto::Shard& shard) {
  std::vector<uint64_t> nodes;
  for (const proto::Replica& replica : shard.chain()) nodes.push_back(replica.node());
  return nodes;
}

}  // namespace covey::scheduler
