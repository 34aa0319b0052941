// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/placement/chain_balance.h"
#include "scheduler/placement/chain_editor.h"
#include "scheduler/placement/server_loads.h"

namespace covey::scheduler {

// Moves of replicas from server to server, although their chains are long enough:
//
//   Balance ─▶ a replica joins on the new server ── it is full ──▶ RemoveSurplus ─▶ moved
//                   │
//                   └── the move would not help any more ──▶ Continue ─▶ canceled
//
// Which member leaves follows from the view, so a restarted scheduler continues moves that were in
// progress. Actor-confined, deterministic.
class ChainMoves {
 public:
  // Replicas that may join, or leave, on one server at a time: they share its network and its
  // optimizer with running pushes, so more at a time would not finish sooner.
  static constexpr uint32_t kMovesPerServerMax = 4;

  // Forgets the moves of shards that are no longer in the view.
  void ForgetDropped(const proto::ClusterView& view);
  // Counts each chain as it will be when all moves have ended.
  void AddLoads(const proto::ClusterView& view, ServerLoads& loads) const;

  // Removes draining members, and members beyond `target`, while at least `target` full members
  // stay. Does not update the loads, which are counted afterwards.
  void RemoveSurplus(ShardId id, const proto::Shard& shard, uint32_t target, ChainEditor& editor);
  // The chain has a joining replica that it does not need: chooses the member that leaves for it,
  // or cancels the move when it does not help.
  void Continue(ShardId id, const proto::Shard& shard, ChainEditor& editor);
  // The chain is too short now: a joining replica stays, and no member leaves for it.
  void Abandon(ShardId id) { leaving_.erase(id); }
  // Starts moves that balance the loads (chain_balance.h).
  void Balance(ChainEditor& editor);

 private:
  // The member that leaves for the joining replica of the chain.
  Leaving leaving_;
};

}  // namespace covey::scheduler
