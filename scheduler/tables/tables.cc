// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/tables.h"

#include <algorithm>
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
#include "scheduler/tables/table_placement.h"

namespace covey::scheduler {
namespace {

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

// Bytes of the table's values and optimizer state, in all of its replicas. Rows of a sparse table
// come with pushes.
absl::StatusOr<uint64_t> MemoryOf(const TableDefinition& table, uint32_t replicas,
                                  const proto::ClusterView& view) {
  if (table.sparse) return 0;
  COVEY_ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(table.optimizer));
  const size_t servers = std::max<size_t>(ServerLoads(view).usable(), 1);
  return table.elements * sizeof(float) * static_cast<uint64_t>(1 + optimizer->state_slots()) *
         std::min<uint64_t>(replicas, servers);
}

// Notes that the momentum of a table adds to that of the contract's asynchrony, if it does.
void CheckMomentum(const proto::TableSpec& spec, const Contract& contract, Transaction& change) {
  if (!contract.AppliesOnArrival() || spec.optimizer().momentum() == 0 ||
      spec.asynchrony().automatic_momentum()) {
    return;
  }
  change.Add(MomentumAddsUp{.name = spec.name(),
                            .contract = ContractName(contract),
                            .momentum = spec.optimizer().momentum()});
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
  const std::string action = absl::StrCat("create table '", spec.name(), "'");
  COVEY_RETURN_IF_ERROR(Annotate(action, CheckServersFor(state_.job(), spec, view)));
  const uint64_t elements = definition.elements;
  // The result of an optimizer that takes norms over whole shards depends on how the table is cut
  // (common/optimizer/optimizer.h), so its tables are cut into as few shards as possible.
  const uint64_t shard_bytes =
      definition.sparse        ? SparseShardBytes(LoopsForShards(view))
      : spec.shard_bytes() > 0 ? spec.shard_bytes()
      : IsElementwise(definition.optimizer.kind)
          ? AutomaticShardBytes(elements * sizeof(float), LoopsForShards(view))
          : kShardBytesMax;
  COVEY_ASSIGN_OR_RETURN(const uint64_t memory, MemoryOf(definition, ReplicasWanted(spec), view));
  COVEY_RETURN_IF_ERROR(Annotate(action, CheckMemory(memory, view, load_of_)));
  const uint64_t count = ShardCount(elements, shard_bytes);
  COVEY_RETURN_IF_ERROR(Annotate(action, CheckTableLimits(view, 1, count)));

  Transaction change(state_);
  const TableId id = change.TakeTableId();
  proto::Table created;
  created.set_id(id.value());
  *created.mutable_spec() = spec;
  if (!initial_values.empty()) {
    created.mutable_origin()->set_folder(initial_values);
    created.mutable_origin()->set_table(spec.name());
    created.mutable_origin()->set_takes(proto::TableOrigin::VALUES);
  } else if (definition.initializer.kind == InitializerKind::kGiven) {
    created.mutable_initialization()->set_epoch(change.epoch().value());
  }
  const proto::Table& table = PlaceTable(
      std::move(created), {.elements = elements, .shard_bytes = shard_bytes}, view, change);
  change.Add(TableCreated{.name = spec.name(),
                          .table = id,
                          .elements = elements,
                          .shards = count,
                          .replicas = table.shards(0).chain_size(),
                          .initial_values = initial_values});
  CheckMomentum(spec, definition.contract, change);
  change.Commit();
  return id;
}

void Tables::PlaceRestored() {
  if (!state_.record().has_restore()) return;
  const proto::Restore restore = state_.record().restore();
  Transaction change(state_);
  for (const proto::Table& before : restore.tables()) {
    proto::Table restored;
    restored.set_id(before.id());
    *restored.mutable_spec() = before.spec();
    if (before.has_contract()) *restored.mutable_contract() = before.contract();
    proto::Table& table =
        PlaceTable(std::move(restored), TableCut::Of(before), state_.view(), change);
    for (proto::Shard& shard : *table.mutable_shards()) shard.set_origin(restore.folder());
  }
  change.EditUnpublished().clear_restore();
  change.Add(TablesRestored{.snapshot = restore.folder(), .tables = restore.tables_size()});
  change.Commit();
}

absl::Status Tables::Restore(const std::vector<proto::Table>& tables) {
  const proto::ClusterView& view = state_.view();
  uint64_t shards = 0;
  uint64_t memory = 0;
  for (const proto::Table& table : tables) {
    const std::string& name = table.spec().name();
    const std::string action = absl::StrCat("restore table '", name, "'");
    const absl::StatusOr<TableDefinition> definition = TableDefinition::InForce(table);
    COVEY_RETURN_IF_ERROR(Annotate(action, definition.status()));
    COVEY_ASSIGN_OR_RETURN(const uint64_t bytes,
                           MemoryOf(*definition, ReplicasWanted(table.spec()), view));
    memory += bytes;
    if (FindTable(view, name) != view.tables().end()) {
      return absl::AlreadyExistsError(absl::StrCat(
          action, ": the job has a table of this name; restore it under another one, with --table ",
          table.origin().table(), "=NEWNAME"));
    }
    COVEY_RETURN_IF_ERROR(Annotate(action, CheckServersFor(state_.job(), table.spec(), view)));
    shards += static_cast<uint64_t>(table.shards_size());
  }
  COVEY_RETURN_IF_ERROR(Annotate("restore tables", CheckTableLimits(view, tables.size(), shards)));
  COVEY_RETURN_IF_ERROR(Annotate("restore tables", CheckMemory(memory, view, load_of_)));
  Transaction change(state_);
  RestoreBegun begun;
  for (const proto::Table& before : tables) {
    proto::Table restored = before;
    restored.set_id(change.TakeTableId().value());
    restored.clear_shards();
    PlaceTable(std::move(restored), TableCut::Of(before), view, change);
    begun.snapshot = before.origin().folder();
    begun.tables.push_back(before.spec().name());
  }
  change.Add(std::move(begun));
  change.Commit();
  return absl::OkStatus();
}

void Tables::EndRestore(uint64_t restore, const absl::Status& outcome) {
  Transaction change(state_);
  RestoreEnded ended = {.failure = std::string(outcome.message())};
  auto& tables = *change.EditView().mutable_tables();
  for (proto::Table& table : tables) {
    if (table.restore() != restore) continue;
    ended.snapshot = table.origin().folder();
    ended.tables.push_back(table.spec().name());
    if (outcome.ok()) table.clear_restore();
  }
  tables.erase(std::remove_if(tables.begin(), tables.end(),
                              [restore](const auto& table) { return table.restore() == restore; }),
               tables.end());
  change.Add(std::move(ended));
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
  CheckMomentum(edited.spec(), *wanted, change);
  change.Commit();
  return change.epoch();
}

}  // namespace covey::scheduler
