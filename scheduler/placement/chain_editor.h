// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/placement/server_loads.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Edits chains within one transaction, and counts what happened to how many shards. Lives as long
// as one reconciliation of Chains.
class ChainEditor {
 public:
  ChainEditor(const proto::ClusterView& view, ServerLoads& loads, Transaction& change,
              ShardsReconciled& counts)
      : view_(view), loads_(loads), change_(change), counts_(counts) {}

  const proto::ClusterView& view() const { return view_; }
  ServerLoads& loads() { return loads_; }

  // The shard, to be edited; its chain has a new epoch.
  proto::Shard& Edit(const proto::Shard& shard) { return change_.EditChain(shard); }
  void Count(ShardChange::Kind kind, NodeId node, const std::string& from = "");

  // The transaction, for what is not about chains.
  Transaction& change() { return change_; }

  // The following methods do not update `loads`; the caller does.
  //
  // Removes the members that have departed. When no full replica is left, only the departed head
  // stays as a name, for error messages and for its replacement.
  void RemoveDeparted(const proto::Shard& shard);
  void Erase(const proto::Shard& shard, int position);
  // Removes one member, and counts it.
  void RemoveAt(const proto::Shard& shard, int position, ShardChange::Kind why);
  // Adds a joining replica at the end, on the lightest loop of `server`.
  const proto::Replica& Join(const proto::Shard& shard, const ServerLoads::Server& server);

 private:
  const proto::ClusterView& view_;
  ServerLoads& loads_;
  Transaction& change_;
  ShardsReconciled& counts_;
};

}  // namespace covey::scheduler
