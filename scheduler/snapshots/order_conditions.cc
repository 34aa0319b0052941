// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/order_conditions.h"

#include "absl/strings/str_cat.h"
#include "common/cluster/snapshot_tables.h"

namespace covey::scheduler {
namespace {

size_t ShardsIn(const proto::ClusterView& view) {
  size_t shards = 0;
  for (const proto::Table& table : view.tables()) {
    if (!IsInSnapshots(table)) continue;
    shards += static_cast<size_t>(table.shards_size());
  }
  return shards;
}

}  // namespace

OrderConditions::OrderConditions(const proto::ClusterView& view)
    : epoch_(view.snapshot().epoch()), shards_(ShardsIn(view)) {
  for (const proto::Group& group : view.groups()) {
    if (group.state() == proto::Group::ACTIVE) generations_[group.id()] = group.generation();
  }
}

std::string OrderConditions::WhyBroken(const proto::ClusterView& view) const {
  size_t active = 0;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    ++active;
    const auto ordered = generations_.find(group.id());
    if (ordered == generations_.end()) {
      return absl::StrCat("group ", group.id(), " has formed meanwhile");
    }
    if (ordered->second != group.generation()) {
      return absl::StrCat("the members of group ", group.id(), " have changed meanwhile");
    }
  }
  if (active != generations_.size()) return "a group has ended meanwhile";
  for (const proto::Table& table : view.tables()) {
    if (!IsInSnapshots(table)) continue;
    if (table.contract_epoch() > epoch_) {
      return absl::StrCat("the contract of table '", table.spec().name(),
                          "' has changed meanwhile");
    }
    for (const proto::Shard& shard : table.shards()) {
      if (shard.chain_epoch() > epoch_) {
        return absl::StrCat("servers of table '", table.spec().name(), "' have changed meanwhile");
      }
    }
  }
  if (shards_ != ShardsIn(view)) return "a table was created, initialized or dropped meanwhile";
  return "";
}

bool HasJoiningReplica(const proto::ClusterView& view) {
  for (const proto::Table& table : view.tables()) {
    if (!IsInSnapshots(table)) continue;
    for (const proto::Shard& shard : table.shards()) {
      for (const proto::Replica& replica : shard.chain()) {
        if (replica.joining()) return true;
      }
    }
  }
  return false;
}

}  // namespace covey::scheduler
