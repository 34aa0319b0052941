// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/replication.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace covey::cli {
namespace {

uint32_t WantedReplicas(const proto::TableSpec& spec) {
  if (spec.durability() == proto::MEMORY) return 1;
  return spec.replicas() == 0 ? 2 : spec.replicas();
}

}  // namespace

std::string Replication::Show() const {
  std::vector<std::string> parts;
  if (without > 0)
    parts.push_back(absl::StrCat(without, " of ", shards, " shards without a server"));
  if (short_of > without) {
    parts.push_back(absl::StrCat("degraded: ", short_of - without, " of ", shards,
                                 " shards short of replicas"));
  }
  if (joining > 0) parts.push_back(absl::StrCat(joining, " joining"));
  if (parts.empty()) parts.push_back("whole");
  if (target < wanted) parts.push_back("too few servers");
  return absl::StrJoin(parts, ", ");
}

Replication ReplicationOf(const proto::Table& table, uint32_t servers) {
  Replication result;
  result.wanted = WantedReplicas(table.spec());
  result.target = std::max<uint32_t>(1, std::min(result.wanted, servers));
  for (const proto::Shard& shard : table.shards()) {
    uint32_t joined = 0;
    for (const proto::Replica& replica : shard.chain()) {
      ++(replica.joining() ? result.joining : joined);
    }
    ++result.shards;
    if (joined < result.target) ++result.short_of;
    if (joined == 0) ++result.without;
  }
  return result;
}

uint32_t ServersStaying(const proto::ClusterView& view) {
  return static_cast<uint32_t>(
      std::count_if(view.nodes().begin(), view.nodes().end(), [](const proto::Node& node) {
        return node.role() == proto::SERVER && node.state() == proto::Node::ALIVE &&
               !node.draining();
      }));
}

std::string ShowDurability(const proto::TableSpec& spec) {
  return WantedReplicas(spec) == 1 ? "memory" : absl::StrCat("replicated ", WantedReplicas(spec));
}

}  // namespace covey::cli
