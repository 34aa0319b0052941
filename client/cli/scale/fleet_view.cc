// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/fleet_view.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace covey::cli {
namespace {

// Alive, and not draining.
uint32_t Staying(const proto::ClusterView& view, proto::Role role) {
  return static_cast<uint32_t>(
      std::count_if(view.nodes().begin(), view.nodes().end(), [role](const proto::Node& node) {
        return node.role() == role && node.state() == proto::Node::ALIVE && !node.draining();
      }));
}

}  // namespace

uint32_t ShardsOn(const proto::ClusterView& view, uint64_t node) {
  uint32_t shards = 0;
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      shards +=
          std::any_of(shard.chain().begin(), shard.chain().end(),
                      [node](const proto::Replica& replica) { return replica.node() == node; });
    }
  }
  return shards;
}

const proto::Node* FindNewest(const proto::ClusterView& view, absl::string_view name) {
  const proto::Node* newest = nullptr;
  // In growing order of id.
  for (const proto::Node& node : view.nodes()) {
    if (node.name() == name) newest = &node;
  }
  return newest;
}

std::string DrainLine(const proto::ClusterView& view, const proto::Node& node,
                      uint32_t first_shards) {
  if (node.role() != proto::SERVER) {
    return absl::StrCat(node.name(), " drains: it leaves at the next step of its group");
  }
  return absl::StrCat(node.name(), " drains: ", ShardsOn(view, node.id()), " of ", first_shards,
                      " shards left");
}

std::string ScaleRest(const proto::ClusterView& view) {
  std::vector<std::string> rest;
  const auto add = [&](proto::Role role, uint32_t wanted, absl::string_view noun) {
    const uint32_t staying = Staying(view, role);
    if (staying >= wanted) return;
    const uint32_t missing = wanted - staying;
    rest.push_back(absl::StrCat(missing, " ", noun, missing == 1 ? "" : "s", " to come"));
  };
  add(proto::SERVER, view.wanted_servers(), "server");
  add(proto::WORKER, view.wanted_workers(), "worker");
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE || !node.draining()) continue;
    const uint32_t shards = ShardsOn(view, node.id());
    rest.push_back(shards == 0 ? absl::StrCat(node.name(), " drains")
                               : absl::StrCat(node.name(), " drains, ", shards, " shards left"));
  }
  return absl::StrJoin(rest, "; ");
}

}  // namespace covey::cli
