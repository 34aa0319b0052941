// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/tables.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/cluster/placement.h"
#include "common/contract/contract.h"
#include "common/optimizer/optimizer.h"
#include "common/table/definition.h"
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

// The folder of the snapshot whose values a new table begins with; empty = its initializer.
absl::StatusOr<std::string> InitialValuesFor(const TableDefinition& table,
                                             const proto::InitialValues& values) {
  const auto found = values.tables().find(table.name);
  if (found == values.tables().end()) return std::string();
  if (found->second == table.elements) return values.folder();
  return absl::InvalidArgumentError(
      absl::StrCat("create table '", table.name, "': it has ", table.elements,
                   " elements, but its initial values in ", values.folder(), " have ",
                   found->second, ": start the job with --initial-values ", values.folder(),
                   ",TABLE,... and leave this table out"));
}

auto FindTable(const proto::ClusterView& view, absl::string_view name) {
  return std::find_if(view.tables().begin(), view.tables().end(),
                      [&](const proto::Table& table) { return table.spec().name() == name; });
}

}  // namespace

absl::StatusOr<TableId> Tables::Create(const proto::TableSpec& spec) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::Parse(spec));
  const proto::ClusterView& view = state_.view();
  if (const auto same = FindTable(view, spec.name()); same != view.tables().end()) {
    // A spec contains no maps, so equal specs have equal bytes.
    if (same->spec().SerializeAsString() == spec.SerializeAsString()) {
      return TableId(same->id());
    }
    return absl::AlreadyExistsError(absl::StrCat(
        "create table '", spec.name(), "': it exists as table ", same->id(), " with another spec {",
        same->spec().ShortDebugString(), "}: use another name, or drop it first"));
  }

  COVEY_ASSIGN_OR_RETURN(const std::string initial_values,
                         InitialValuesFor(definition, state_.record().initial_values()));
  ServerLoads loads = Present(view);
  std::vector<ShardHome> homes = Homes(view, loads);
  if (homes.empty()) {
    return absl::UnavailableError(
        absl::StrCat("create table '", spec.name(), "': no server is alive"));
  }
  const uint32_t replicas = ReplicasWanted(spec);
  if (spec.durability() == proto::REPLICATED && loads.usable() < replicas) {
    return absl::FailedPreconditionError(absl::StrCat(
        "create table '", spec.name(), "': REPLICATED on ", replicas, " servers, but there are ",
        loads.usable(), ": start ", replicas - loads.usable(),
        " more, or leave durability out: then replicas are added when servers come"));
  }
  const uint64_t elements = definition.elements;
  // The result of an optimizer that takes norms over whole shards depends on how the table is cut
  // (common/optimizer/optimizer.h), so its tables are cut into as few shards as possible.
  const uint64_t shard_bytes = spec.shard_bytes() > 0 ? spec.shard_bytes()
                               : IsElementwise(definition.optimizer.kind)
                                   ? AutomaticShardBytes(elements * sizeof(float), homes.size())
                                   : kShardBytesMax;
  const uint64_t count = ShardCount(elements, shard_bytes);
  uint64_t shards_before = 0;
  for (const proto::Table& table : view.tables()) shards_before += table.shards_size();
  if (view.tables_size() >= static_cast<int>(kTablesMax) || shards_before + count > kShardsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "create table '", spec.name(), "': it needs ", count, " shards beside ", shards_before,
        " in ", view.tables_size(), " tables; the limits are ", kShardsMax, " shards and ",
        kTablesMax, " tables: choose a larger shard_bytes, or drop tables"));
  }

  Transaction change(state_);
  proto::Table& table = *change.EditView().add_tables();
  table.set_id(change.TakeTableId().value());
  *table.mutable_spec() = spec;
  table.set_initial_values(initial_values);
  AddShards(PlaceShards(elements, shard_bytes, std::move(homes)), table, change);
  AddFollowers(replicas, loads, table);
  const TableId id(table.id());
  change.Add(TableCreated{.name = spec.name(),
                          .table = id,
                          .elements = elements,
                          .shards = count,
                          .replicas = table.shards(0).chain_size(),
                          .initial_values = initial_values});
  change.Commit();
  return id;
}

void Tables::PlaceRestored() {
  if (!state_.record().has_restore()) return;
  const proto::Restore restore = state_.record().restore();
  Transaction change(state_);
  for (const proto::Table& before : restore.tables()) {
    ServerLoads loads = Present(state_.view());
    const proto::Shard& last = before.shards(before.shards_size() - 1);
    const std::vector<PlacedShard> placed =
        PlaceShards(last.first_element() + last.element_count(),
                    ShardBytesOf(before.shards(0).element_count()), Homes(state_.view(), loads));
    proto::Table& table = *change.EditView().add_tables();
    table.set_id(before.id());
    *table.mutable_spec() = before.spec();
    if (before.has_contract()) *table.mutable_contract() = before.contract();
    AddShards(placed, table, change);
    for (proto::Shard& shard : *table.mutable_shards()) shard.set_origin(restore.folder());
    AddFollowers(ReplicasWanted(before.spec()), loads, table);
  }
  change.EditUnpublished().clear_restore();
  change.Add(TablesRestored{.snapshot = restore.folder(), .tables = restore.tables_size()});
  change.Commit();
}

absl::Status Tables::Drop(absl::string_view name) {
  const proto::ClusterView& view = state_.view();
  const auto table = FindTable(view, name);
  if (table == view.tables().end()) {
    return absl::NotFoundError(
        absl::StrCat("drop table '", name, "': no such table; list the tables to see their names"));
  }
  Transaction change(state_);
  change.Add(TableDropped{.name = table->spec().name(), .table = TableId(table->id())});
  change.EditView().mutable_tables()->erase(table);
  change.Commit();
  return absl::OkStatus();
}

absl::StatusOr<Epoch> Tables::SetContract(absl::string_view name, const proto::Contract& contract,
                                          absl::string_view why) {
  const proto::ClusterView& view = state_.view();
  const auto table = FindTable(view, name);
  if (table == view.tables().end()) {
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
    return Epoch(table->contract_epoch());
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
  Transaction change(state_);
  proto::Table& edited = change.Edit(*table);
  *edited.mutable_contract() = ContractToProto(*wanted);
  edited.set_contract_epoch(change.epoch().value());
  change.Add(ContractChanged{.name = edited.spec().name(),
                             .table = TableId(edited.id()),
                             .from = ContractName(present),
                             .to = ContractName(*wanted),
                             .why = std::string(why)});
  change.Commit();
  return change.epoch();
}

}  // namespace covey::scheduler
