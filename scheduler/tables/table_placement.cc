// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/table_placement.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/job_durability.h"
#include "common/cluster/limits.h"
#include "common/cluster/placement.h"
#include "scheduler/placement/server_loads.h"

namespace covey::scheduler {
namespace {

// The data loops of the servers that new shards may go to, with the bytes that they hold and head.
// Draining servers are included only when there are no others.
std::vector<ShardHome> Homes(const proto::ClusterView& view, const ServerLoads& loads) {
  std::map<Address, ShardHome> heads;
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (shard.chain_size() == 0) continue;
      ShardHome& home = heads[{NodeId(shard.chain(0).node()), shard.chain(0).loop()}];
      home.head_bytes += ShardBytes(shard);
      ++home.heads;
    }
  }
  std::vector<ShardHome> homes;
  for (const ServerLoads::Server& server : loads.servers()) {
    if (server.draining && loads.usable() > 0) continue;
    for (size_t i = 0; i < server.loops.size(); ++i) {
      const Address address{server.node, static_cast<uint32_t>(i + 1)};
      const ShardHome& headed = heads[address];
      homes.push_back({.address = address,
                       .server_rank = server.rank,
                       .bytes = server.loops[i],
                       .head_bytes = headed.head_bytes,
                       .heads = headed.heads});
    }
  }
  return homes;
}

// The loads of all servers, draining ones included.
ServerLoads Present(const proto::ClusterView& view) {
  ServerLoads loads(view);
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      for (const proto::Replica& replica : shard.chain()) loads.Add(replica, ShardBytes(shard));
    }
  }
  return loads;
}

// Adds followers to the heads of a new table.
void AddFollowers(uint32_t replicas, ServerLoads& loads, proto::Table& table) {
  for (const proto::Shard& shard : table.shards()) {
    loads.Add(shard.chain(0), ShardBytes(shard));
  }
  for (proto::Shard& shard : *table.mutable_shards()) {
    while (static_cast<uint32_t>(shard.chain_size()) < replicas) {
      const ServerLoads::Server* server = loads.Choose(NodesOf(shard), UINT32_MAX);
      if (server == nullptr) break;
      proto::Replica& follower = *shard.add_chain();
      follower.set_node(server->node.value());
      follower.set_loop(server->LightestLoop());
      loads.Add(follower, ShardBytes(shard));
    }
  }
}

void AddShards(const std::vector<PlacedShard>& placed, proto::Table& table, Transaction& change) {
  for (const PlacedShard& place : placed) {
    proto::Shard& shard = change.EditChain(*table.add_shards());
    shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
    shard.set_first_element(place.first_element);
    shard.set_element_count(place.element_count);
    shard.set_generation(change.epoch().value());
    proto::Replica& head = *shard.add_chain();
    head.set_node(place.home.node.value());
    head.set_loop(place.home.loop);
  }
}

}  // namespace

TableCut TableCut::Of(const proto::Table& table) {
  const proto::Shard& last = table.shards(table.shards_size() - 1);
  return {.elements = last.first_element() + last.element_count(),
          .shard_bytes = ShardBytesOf(table.shards(0).element_count())};
}

size_t LoopsForShards(const proto::ClusterView& view) { return Homes(view, Present(view)).size(); }

absl::Status CheckServersFor(const JobSpec& job, const proto::TableSpec& spec,
                             const proto::ClusterView& view) {
  COVEY_RETURN_IF_ERROR(job.durability.CheckTable(spec));
  const ServerLoads loads(view);
  if (LoopsForShards(view) == 0) return absl::UnavailableError("no server is alive");
  const uint32_t replicas = ReplicasWanted(spec);
  const bool must_replicate = spec.durability() == proto::REPLICATED ||
                              job.durability.kind == JobDurability::Kind::kReplicated;
  if (!must_replicate || loads.usable() >= replicas) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("REPLICATED on ", replicas, " servers, but there are ", loads.usable(),
                   ": start ", replicas - loads.usable(),
                   " more, or leave durability out: then replicas are added when servers come"));
}

absl::Status CheckTableLimits(const proto::ClusterView& view, size_t tables, uint64_t shards) {
  uint64_t before = 0;
  for (const proto::Table& table : view.tables()) before += table.shards_size();
  const auto tables_before = static_cast<size_t>(view.tables_size());
  if (tables_before + tables <= kTablesMax && before + shards <= kShardsMax) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("it needs ", shards, " shards beside ", before, " in ", tables_before,
                   " tables; the limits are ", kShardsMax, " shards and ", kTablesMax,
                   " tables: choose a larger shard_bytes, or drop tables"));
}

absl::Status CheckMemory(uint64_t bytes, const proto::ClusterView& view, const LoadOf& load_of) {
  const ServerLoads present = Present(view);
  uint64_t room = 0;
  for (const ServerLoads::Server& server : present.servers()) {
    if (server.draining && present.usable() > 0) continue;
    const proto::ServerLoad* const load = load_of(server.node);
    if (load == nullptr || load->table_bytes_max() == 0) return absl::OkStatus();
    // A shard that was placed a moment ago is not in the load yet.
    const uint64_t taken = std::max(load->table_bytes(), server.bytes);
    room += load->table_bytes_max() - std::min(load->table_bytes_max(), taken);
  }
  if (bytes <= room) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("its values and optimizer state need ", bytes,
                   " bytes in all replicas, and the "
                   "tables of the servers may take ",
                   room, " more; check its shape, drop tables, or start more servers"));
}

proto::Table& PlaceTable(proto::Table table, const TableCut& cut, const proto::ClusterView& view,
                         Transaction& change) {
  ServerLoads loads = Present(view);
  const std::vector<PlacedShard> placed =
      PlaceShards(cut.elements, cut.shard_bytes, Homes(view, loads));
  proto::Table& added = *change.EditView().add_tables();
  added = std::move(table);
  AddShards(placed, added, change);
  AddFollowers(ReplicasWanted(added.spec()), loads, added);
  return added;
}

}  // namespace covey::scheduler
