#include "scheduler/tables/tables.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/cluster/placement.h"
#include "common/contract/contract.h"
#include "common/optimizer/definition.h"
#include "scheduler/placement/hosting.h"
#include "scheduler/tables/table_spec.h"

namespace covey::scheduler {
namespace {

uint64_t Elements(const proto::TableSpec& spec) {
  uint64_t elements = 1;
  for (uint64_t extent : spec.shape()) elements *= extent;
  return elements;
}

// Whether the table's optimizer takes norms over whole shards, so that each cut changes what it does
// (common/optimizer/optimizer.h).
bool UpdatesWhole(const proto::TableSpec& spec) {
  const auto optimizer = OptimizerFromProto(spec.optimizer());
  return optimizer.ok() && !IsElementwise(optimizer->kind);
}

// The data loops of the servers that new shards may go to, with what they hold and head: those that
// drain only when there are no others.
std::vector<ShardHome> Homes(const proto::ClusterView& view, const Hosting& hosting) {
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
  for (const Hosting::Server& server : hosting.servers()) {
    if (server.draining && hosting.usable() > 0) continue;
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

// Everything that the servers hold, whoever may be about to leave.
Hosting Present(const proto::ClusterView& view) {
  Hosting hosting(view);
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      for (const proto::Replica& replica : shard.chain()) hosting.Add(replica, ShardBytes(shard));
    }
  }
  return hosting;
}

// Adds followers to the heads of a new table.
void AddFollowers(uint32_t replicas, Hosting& hosting, proto::Table& table) {
  for (const proto::Shard& shard : table.shards()) {
    hosting.Add(shard.chain(0), ShardBytes(shard));
  }
  for (proto::Shard& shard : *table.mutable_shards()) {
    while (static_cast<uint32_t>(shard.chain_size()) < replicas) {
      const Hosting::Server* server = hosting.Choose(NodesOf(shard), UINT32_MAX);
      if (server == nullptr) break;
      proto::Replica& follower = *shard.add_chain();
      follower.set_node(server->node.value());
      follower.set_loop(server->LightestLoop());
      hosting.Add(follower, ShardBytes(shard));
    }
  }
}

auto FindTable(proto::ClusterView& view, absl::string_view name) {
  return std::find_if(view.mutable_tables()->begin(), view.mutable_tables()->end(),
                      [&](const proto::Table& table) { return table.spec().name() == name; });
}

}  // namespace

absl::StatusOr<Tables::Creation> Tables::Create(const proto::TableSpec& spec) {
  COVEY_RETURN_IF_ERROR(ValidateTableSpec(spec));
  proto::ClusterView& view = *state_.mutable_view();
  if (const auto same = FindTable(view, spec.name()); same != view.mutable_tables()->end()) {
    // No maps in a spec, so equal specs have equal bytes.
    if (same->spec().SerializeAsString() == spec.SerializeAsString()) {
      return Creation{.table = TableId(same->id())};
    }
    return absl::AlreadyExistsError(absl::StrCat(
        "create table '", spec.name(), "': it exists as table ", same->id(), " with another spec {",
        same->spec().ShortDebugString(), "}: use another name, or drop it first"));
  }

  Hosting hosting = Present(view);
  std::vector<ShardHome> homes = Homes(view, hosting);
  if (homes.empty()) {
    return absl::UnavailableError(
        absl::StrCat("create table '", spec.name(), "': no server is alive"));
  }
  const uint32_t replicas = ReplicasWanted(spec);
  if (spec.durability() == proto::REPLICATED && hosting.usable() < replicas) {
    return absl::FailedPreconditionError(absl::StrCat(
        "create table '", spec.name(), "': REPLICATED on ", replicas, " servers, but there are ",
        hosting.usable(), ": start ", replicas - hosting.usable(),
        " more, or leave durability out: then replicas are added when servers come"));
  }
  const uint64_t elements = Elements(spec);
  const uint64_t shard_bytes = spec.shard_bytes() > 0 ? spec.shard_bytes()
                               : UpdatesWhole(spec)
                                   ? kShardBytesMax
                                   : AutomaticShardBytes(elements * sizeof(float), homes.size());
  const uint64_t count = ShardCount(elements, shard_bytes);
  uint64_t shards_before = 0;
  for (const proto::Table& table : view.tables()) shards_before += table.shards_size();
  if (view.tables_size() >= static_cast<int>(kTablesMax) || shards_before + count > kShardsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "create table '", spec.name(), "': it needs ", count, " shards beside ", shards_before,
        " in ", view.tables_size(), " tables; the limits are ", kShardsMax, " shards and ",
        kTablesMax, " tables: choose a larger shard_bytes, or drop tables"));
  }

  view.set_epoch(view.epoch() + 1);
  proto::Table& table = *view.add_tables();
  table.set_id(state_.next_table());
  state_.set_next_table(state_.next_table() + 1);
  *table.mutable_spec() = spec;
  for (const PlacedShard& placed : PlaceShards(elements, shard_bytes, std::move(homes))) {
    proto::Shard& shard = *table.add_shards();
    shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
    shard.set_first_element(placed.first_element);
    shard.set_element_count(placed.element_count);
    shard.set_generation(view.epoch());
    shard.set_chain_epoch(view.epoch());
    proto::Replica& head = *shard.add_chain();
    head.set_node(placed.home.node.value());
    head.set_loop(placed.home.loop);
  }
  AddFollowers(replicas, hosting, table);
  return Creation{
      .table = TableId(table.id()),
      .decision = absl::StrCat("table '", spec.name(), "' created as table ", table.id(), ": ",
                               elements, " elements in ", count, " shards on ",
                               table.shards(0).chain_size(), " servers each")};
}

absl::StatusOr<std::string> Tables::Drop(absl::string_view name) {
  proto::ClusterView& view = *state_.mutable_view();
  const auto table = FindTable(view, name);
  if (table == view.mutable_tables()->end()) {
    return absl::NotFoundError(
        absl::StrCat("drop table '", name, "': no such table; list the tables to see their names"));
  }
  std::string decision = absl::StrCat("table '", name, "' (", table->id(), ") dropped");
  view.mutable_tables()->erase(table);
  view.set_epoch(view.epoch() + 1);
  return decision;
}

absl::StatusOr<Tables::Switch> Tables::SetContract(absl::string_view name,
                                                   const proto::Contract& contract,
                                                   absl::string_view why) {
  proto::ClusterView& view = *state_.mutable_view();
  const auto table = FindTable(view, name);
  if (table == view.mutable_tables()->end()) {
    return absl::NotFoundError(absl::StrCat(
        "set contract of table '", name, "': no such table; list the tables to see their names"));
  }
  const auto refuse = [&](const absl::Status& status) {
    return Annotate(absl::StrCat("set contract of table '", name, "'"), status);
  };
  const absl::StatusOr<Contract> wanted = ContractFromProto(contract);
  if (!wanted.ok()) return refuse(wanted.status());
  COVEY_ASSIGN_OR_RETURN(const Contract present, ContractInForce(*table));
  if (ContractName(*wanted) == ContractName(present)) {
    return Switch{.epoch = Epoch(table->contract_epoch())};
  }
  if (const absl::Status status = present.CheckSwitchTo(*wanted); !status.ok()) {
    return refuse(status);
  }
  const bool has_groups =
      std::any_of(view.groups().begin(), view.groups().end(),
                  [](const proto::Group& group) { return group.state() == proto::Group::ACTIVE; });
  if (wanted->kind == Contract::Kind::kBsp && !has_groups) {
    return refuse(absl::InvalidArgumentError(
        "bsp takes pushes of groups only, and no group is active; choose another contract"));
  }
  view.set_epoch(view.epoch() + 1);
  *table->mutable_contract() = ContractToProto(*wanted);
  table->set_contract_epoch(view.epoch());
  return Switch{
      .epoch = Epoch(view.epoch()),
      .decision = absl::StrCat("table '", name, "' (", table->id(), ") goes from ",
                               ContractName(present), " to ", ContractName(*wanted), ": ", why)};
}

}  // namespace covey::scheduler
