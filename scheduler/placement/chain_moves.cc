// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/chain_moves.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "scheduler/placement/chain_members.h"

namespace covey::scheduler {
namespace {

// Moves that are started at a time; more follow when these are reported as done.
constexpr int kMovesPerPlanMax = 16;

// Null when there is no such shard.
const proto::Shard* FindShard(const proto::ClusterView& view, ShardId id) {
  const auto& tables = view.tables();
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& candidate) {
    return TableId(candidate.id()) == id.table;
  });
  const auto index = static_cast<int>(id.index.value());
  return table == tables.end() || index >= table->shards_size() ? nullptr : &table->shards(index);
}

}  // namespace

void ChainMoves::ForgetDropped(const proto::ClusterView& view) {
  std::erase_if(leaving_, [&](const auto& move) { return FindShard(view, move.first) == nullptr; });
}

void ChainMoves::AddLoads(const proto::ClusterView& view, ServerLoads& loads) const {
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const auto leaving = leaving_.find({TableId(table.id()), ShardIndex(shard.index())});
      const uint64_t leaver = leaving == leaving_.end() ? 0 : leaving->second.value();
      ServerLoads::Server* head = nullptr;
      int holders = 0;
      for (const proto::Replica& replica : shard.chain()) {
        ServerLoads::Server* server = loads.Find(replica.node());
        if (replica.node() == leaver) {
          if (server != nullptr) ++server->leaving;
          continue;
        }
        loads.Add(replica, ShardBytes(shard));
        if (head == nullptr || head->draining) head = server;
        holders += IsFull(replica) || leaver != 0 ? 1 : 0;
      }
      if (head != nullptr && holders > 1) head->head_bytes += ShardBytes(shard);
    }
  }
}

void ChainMoves::RemoveSurplus(ShardId id, const proto::Shard& shard, uint32_t target,
                               ChainEditor& editor) {
  const ServerLoads& loads = editor.loads();
  if (IsLost(shard, loads)) return Abandon(id);
  if (HasJoining(shard)) {
    const int joining = shard.chain_size() - 1;
    if (!IsDraining(loads, shard.chain(joining))) return;
    editor.RemoveAt(shard, joining, ShardChange::Kind::kMovedAway);
  }
  uint32_t staying = StayingIn(shard, loads);
  while (static_cast<uint32_t>(shard.chain_size()) > target && staying >= target) {
    const auto leaving = leaving_.find(id);
    int victim = shard.chain_size() - 1;
    if (leaving != leaving_.end() && PositionIn(shard, leaving->second.value()) >= 0) {
      victim = PositionIn(shard, leaving->second.value());
    }
    for (int i = shard.chain_size() - 1; i >= 0; --i) {
      if (IsDraining(loads, shard.chain(i))) victim = i;
    }
    if (!IsDraining(loads, shard.chain(victim))) --staying;
    editor.RemoveAt(shard, victim, ShardChange::Kind::kMovedAway);
  }
  Abandon(id);
}

void ChainMoves::Continue(ShardId id, const proto::Shard& shard, ChainEditor& editor) {
  if (leaving_.count(id) > 0) return;
  ServerLoads& loads = editor.loads();
  const proto::Replica joining = *shard.chain().rbegin();
  loads.Remove(joining, ShardBytes(shard));
  const ServerLoads::Server& to = *loads.Find(joining.node());
  int best = -1;
  double best_gain = 0;
  for (int position = 0; position + 1 < shard.chain_size(); ++position) {
    const double gain = MoveGain(shard, position, to, loads);
    if (gain <= best_gain) continue;
    best = position;
    best_gain = gain;
  }
  if (best < 0) {
    return editor.RemoveAt(shard, shard.chain_size() - 1, ShardChange::Kind::kMoveCancelled);
  }
  ServerLoads::Server& from = *loads.Find(shard.chain(best).node());
  loads.Remove(shard.chain(best), ShardBytes(shard));
  loads.Add(joining, ShardBytes(shard));
  if (best == 0 && shard.chain_size() > 2) {
    from.head_bytes -= ShardBytes(shard);
    loads.Find(shard.chain(1).node())->head_bytes += ShardBytes(shard);
  }
  ++from.leaving;
  leaving_[id] = from.node;
}

void ChainMoves::Balance(ChainEditor& editor) {
  ServerLoads& loads = editor.loads();
  for (int i = 0; i < kMovesPerPlanMax; ++i) {
    const auto move = PlanMove(editor.view(), leaving_, loads, kMovesPerServerMax);
    if (!move) return;
    const proto::Shard& shard = *FindShard(editor.view(), move->shard);
    const uint64_t bytes = ShardBytes(shard);
    ServerLoads::Server& from = *loads.Find(move->from.value());
    ServerLoads::Server& to = *loads.Find(move->to.value());
    const int position = PositionIn(shard, move->from.value());
    if (position == 0 && shard.chain_size() > 1) {
      from.head_bytes -= bytes;
      loads.Find(shard.chain(1).node())->head_bytes += bytes;
    }
    loads.Add(editor.Join(shard, to), bytes);
    loads.Remove(shard.chain(position), bytes);
    ++from.leaving;
    leaving_[move->shard] = from.node;
    editor.Count(ShardChange::Kind::kMoving, to.node, from.name);
  }
}

}  // namespace covey::scheduler
