// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/chains.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "common/cluster/limits.h"
#include "common/cluster/placement.h"
#include "scheduler/placement/chain_members.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// A server that another one cannot reach, or whose content was wrong, gets no new replicas for this
// time, so that it can recover and others can take its place.
constexpr absl::Duration kAvoidUnreachable = absl::Seconds(10);
constexpr absl::Duration kAvoidUnfit = absl::Seconds(1);

uint32_t TargetOf(const proto::Table& table, const ServerLoads& loads) {
  const auto servers = static_cast<uint32_t>(std::max<size_t>(1, loads.usable()));
  return std::min(ReplicasWanted(table.spec()), servers);
}

int FullMembers(const proto::Shard& shard) {
  return static_cast<int>(std::count_if(shard.chain().begin(), shard.chain().end(), IsFull));
}

// Null when there is no such shard.
const proto::Shard* FindReported(const proto::ClusterView& view,
                                 const proto::ReplicaReport& report) {
  const auto& tables = view.tables();
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& candidate) {
    return candidate.id() == report.table();
  });
  return table == tables.end() || report.shard() >= static_cast<uint32_t>(table->shards_size())
             ? nullptr
             : &table->shards(static_cast<int>(report.shard()));
}

}  // namespace

void Chains::Avoid(NodeId server, absl::Time until) {
  absl::Time& avoided = avoided_until_.try_emplace(server, until).first->second;
  avoided = std::max(avoided, until);
}

void Chains::MarkAvoided(ServerLoads& loads, absl::Time now) {
  for (auto at = avoided_until_.begin(); at != avoided_until_.end();) {
    ServerLoads::Server* server = loads.Find(at->first.value());
    if (server == nullptr || at->second <= now) {
      at = avoided_until_.erase(at);
      continue;
    }
    server->avoided = true;
    next_ = std::min(next_, at->second);
    ++at;
  }
}

void Chains::OnReports(absl::Time now, NodeId sender, const proto::ReplicaReportRequest& request) {
  Transaction change(state_, Transaction::EpochScope::kCall);
  ServerLoads loads(state_.view());
  ChainEditor editor(state_.view(), loads, change, reported_);
  bool changed = false;
  for (const proto::ReplicaReport& report : request.reports()) {
    changed = OnReport(now, sender, report, editor) || changed;
  }
  if (changed) change.Add(ReplicaReportsTaken{});
  change.Commit();
}

bool Chains::OnReport(absl::Time now, NodeId sender, const proto::ReplicaReport& report,
                      ChainEditor& editor) {
  const proto::Shard* shard = FindReported(state_.view(), report);
  if (shard == nullptr) return false;
  const int position = PositionIn(*shard, report.node());
  const int reporter = PositionIn(*shard, sender.value());
  if (shard->generation() != report.generation() || shard->chain_epoch() != report.chain_epoch() ||
      position < 0 || reporter < 0) {
    return false;
  }
  const NodeId node(report.node());
  const ShardId id{TableId(report.table()), ShardIndex(report.shard())};
  const bool is_full = IsFull(shard->chain(position));
  const bool is_last_full = is_full && FullMembers(*shard) == 1;
  const bool comes_before = reporter < position && IsFull(shard->chain(reporter));
  switch (report.kind()) {
    case proto::ReplicaReport::READY:
      if (!comes_before || is_full) return false;
      editor.Edit(*shard).mutable_chain(position)->set_joining(false);
      editor.Count(ShardChange::Kind::kFull, node);
      if (const NodeId corrupt = lost_.ClearCorrupt(id, shard->generation());
          PositionIn(*shard, corrupt.value()) >= 0) {
        editor.Erase(*shard, PositionIn(*shard, corrupt.value()));
      }
      break;
    case proto::ReplicaReport::UNREACHABLE:
      if (!comes_before || is_last_full) return false;
      editor.RemoveAt(*shard, position, ShardChange::Kind::kUnreachable);
      avoided_until_[node] = now + kAvoidUnreachable;
      break;
    case proto::ReplicaReport::UNFIT:
      if (!comes_before && reporter != position) return false;
      Avoid(node, now + kAvoidUnfit);
      if (is_last_full) {
        // No other server has the content: Reconcile re-initializes the shard.
        lost_.MarkCorrupt(id, node, shard->generation());
        is_due_ = true;
        return false;
      }
      editor.RemoveAt(*shard, position, ShardChange::Kind::kUnfit);
      break;
    default:
      return false;
  }
  is_due_ = true;
  return true;
}

absl::Time Chains::NextReconcile() const {
  const bool is_due = is_due_ || placement_version_ != state_.placement_version();
  return is_due ? absl::InfinitePast() : next_;
}

void Chains::Reconcile(absl::Time now) {
  if (now < NextReconcile()) return;
  is_due_ = false;
  placement_version_ = state_.placement_version();
  next_ = absl::InfiniteFuture();
  const proto::ClusterView& view = state_.view();
  ServerLoads loads(view);
  MarkAvoided(loads, now);
  Transaction change(state_, Transaction::EpochScope::kCall);
  ShardsReconciled counts = std::exchange(reported_, {});
  ChainEditor editor(view, loads, change, counts);
  TakeOut(editor);
  moves_.AddLoads(view, loads);
  if (Repair(now, editor)) moves_.Balance(editor);
  next_ = std::min(next_, lost_.NextRound());
  if (!counts.shards.empty()) change.Add(std::move(counts));
  change.Commit();
}

void Chains::TakeOut(ChainEditor& editor) {
  moves_.ForgetDropped(editor.view());
  for (const proto::Table& table : editor.view().tables()) {
    const uint32_t target = TargetOf(table, editor.loads());
    for (const proto::Shard& shard : table.shards()) {
      editor.RemoveDeparted(shard);
      moves_.RemoveSurplus({TableId(table.id()), ShardIndex(shard.index())}, shard, target, editor);
    }
  }
}

bool Chains::HasLostShard(const proto::Table& table) const {
  const auto has_content = [this](const proto::Replica& replica) {
    const proto::Node* const node = FindNode(state_.view(), NodeId(replica.node()));
    return IsFull(replica) && node != nullptr && node->state() == proto::Node::ALIVE;
  };
  return std::any_of(table.shards().begin(), table.shards().end(), [&](const proto::Shard& shard) {
    return lost_.IsCorrupt({TableId(table.id()), ShardIndex(shard.index())}, shard) ||
           std::none_of(shard.chain().begin(), shard.chain().end(), has_content);
  });
}

bool Chains::Repair(absl::Time now, ChainEditor& editor) {
  const ServerLoads& loads = editor.loads();
  bool is_whole = true;
  std::vector<UnderReplicated> short_chains;
  lost_.BeginRound();
  for (const proto::Table& table : editor.view().tables()) {
    const uint32_t target = TargetOf(table, loads);
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      if (IsLost(shard, loads) || lost_.IsCorrupt(id, shard)) {
        if (lost_.Reinitialize(now, table, shard, target, SnapshotWith(table), editor)) continue;
      } else if (StayingIn(shard, loads) >= target) {
        if (HasJoining(shard)) moves_.Continue(id, shard, editor);
        continue;
      } else if (!HasJoining(shard) && loads.usable() > 0) {
        short_chains.push_back({.shard = &shard, .id = id, .full = FullMembers(shard)});
      }
      is_whole = false;
      moves_.Abandon(id);
    }
  }
  lost_.EndRound(now);
  // The chains with the fewest replicas first.
  std::sort(short_chains.begin(), short_chains.end(),
            [](const UnderReplicated& a, const UnderReplicated& b) {
              return std::tie(a.full, a.id) < std::tie(b.full, b.id);
            });
  for (const UnderReplicated& chain : short_chains) Fill(*chain.shard, editor);
  return is_whole;
}

const proto::NewestSnapshot& Chains::SnapshotWith(const proto::Table& table) const {
  const proto::NewestSnapshot& newest = state_.record().newest_snapshot();
  const bool has_table = std::count(newest.tables().begin(), newest.tables().end(), table.id()) > 0;
  return has_table ? newest : proto::NewestSnapshot::default_instance();
}

void Chains::Fill(const proto::Shard& shard, ChainEditor& editor) {
  ServerLoads& loads = editor.loads();
  std::vector<uint64_t> staying;
  int draining = -1;
  for (int i = 0; i < shard.chain_size(); ++i) {
    if (IsDraining(loads, shard.chain(i))) {
      draining = i;
    } else {
      staying.push_back(shard.chain(i).node());
    }
  }
  const ServerLoads::Server* server = loads.Choose(staying, ChainMoves::kMovesPerServerMax);
  if (server == nullptr) return;
  if (shard.chain_size() >= static_cast<int>(kReplicasMax)) {
    // The chain has no room for one more. Only here a member leaves before another one is full;
    // many full ones remain.
    loads.Remove(shard.chain(draining), ShardBytes(shard));
    editor.RemoveAt(shard, draining, ShardChange::Kind::kMovedAway);
  }
  loads.Add(editor.Join(shard, *server), ShardBytes(shard));
  editor.Count(ShardChange::Kind::kJoining, server->node);
}

}  // namespace covey::scheduler
