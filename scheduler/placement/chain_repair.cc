// The edits that Chains makes of one chain: who goes, who comes.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "scheduler/placement/chain_members.h"
#include "scheduler/placement/chains.h"
#include "scheduler/state/nodes.h"

namespace covey::scheduler {
namespace {

// Moves planned at a time; the next ones follow when these are reported.
constexpr int kMovesPerPlanMax = 16;

}  // namespace

void Chains::RemoveDeparted(proto::Shard& shard, const Hosting& hosting, Epoch published) {
  const auto is_alive = [&](const proto::Replica& replica) {
    return hosting.Find(replica.node()) != nullptr;
  };
  if (std::all_of(shard.chain().begin(), shard.chain().end(), is_alive)) return;
  const NodeId head(shard.chain(0).node());
  const bool is_lost =
      std::none_of(shard.chain().begin(), shard.chain().end(), [&](const proto::Replica& r) {
        return is_alive(r) && (IsFull(r) || Planted(PlantedBug::kPromoteJoiningReplica));
      });
  auto& chain = *shard.mutable_chain();
  if (is_lost) {
    // The head's name stays, for errors and for who comes in its place.
    if (chain.size() == 1) return;
    Note("without a full replica after", head);
    chain.erase(chain.begin() + 1, chain.end());
    Change(shard, published);
    return;
  }
  for (const proto::Replica& replica : chain) {
    if (!is_alive(replica)) Note("no longer on", NodeId(replica.node()));
  }
  chain.erase(std::remove_if(chain.begin(), chain.end(),
                             [&](const proto::Replica& r) { return !is_alive(r); }),
              chain.end());
  if (Planted(PlantedBug::kPromoteJoiningReplica)) chain[0].set_joining(false);
  if (NodeId(chain[0].node()) != head) Note("promoted on", NodeId(chain[0].node()));
  Change(shard, published);
}

void Chains::Trim(ShardId id, proto::Shard& shard, uint32_t target, const Hosting& hosting,
                  Epoch published) {
  if (IsLost(shard, hosting)) {
    leaving_.erase(id);
    return;
  }
  if (HasJoining(shard)) {
    const proto::Replica& joining = *shard.chain().rbegin();
    if (!IsDraining(hosting, joining)) return;
    Note("moved away from", NodeId(joining.node()));
    EraseAt(shard, shard.chain_size() - 1);
    Change(shard, published);
  }
  uint32_t staying = StayingIn(shard, hosting);
  while (static_cast<uint32_t>(shard.chain_size()) > target && staying >= target) {
    const auto leaving = leaving_.find(id);
    int victim = shard.chain_size() - 1;
    if (leaving != leaving_.end() && PositionIn(shard, leaving->second.value()) >= 0) {
      victim = PositionIn(shard, leaving->second.value());
    }
    for (int i = shard.chain_size() - 1; i >= 0; --i) {
      if (IsDraining(hosting, shard.chain(i))) victim = i;
    }
    if (!IsDraining(hosting, shard.chain(victim))) --staying;
    Note("moved away from", NodeId(shard.chain(victim).node()));
    EraseAt(shard, victim);
    Change(shard, published);
  }
  leaving_.erase(id);
}

bool Chains::IsSpoilt(ShardId id, const proto::Shard& shard) const {
  const auto at = spoilt_.find(id);
  if (at == spoilt_.end() || at->second.generation != shard.generation()) return false;
  // Unless somebody else has become full, or it has left.
  return std::all_of(shard.chain().begin(), shard.chain().end(), [&](const proto::Replica& r) {
    return IsFull(r) == (r.node() == at->second.node.value());
  });
}

Hosting::Server* Chains::HeirOf(absl::Time now, NodeId lost, Hosting& hosting) {
  const proto::Node* node = FindNode(state_.view(), lost);
  const proto::Node* holder =
      node == nullptr ? nullptr : FindHolder(state_.view(), proto::SERVER, node->rank());
  Hosting::Server* heir = holder == nullptr ? nullptr : hosting.Find(holder->id());
  const absl::Time since = lost_since_.try_emplace(lost, now).first->second;
  const auto fenced = fenced_until_.find(lost);
  if (fenced != fenced_until_.end() && now < fenced->second) {
    if (since == now) Note("waiting for the end of the lease of", lost);
    next_ = std::min(next_, fenced->second);
    return nullptr;
  }
  if (heir != nullptr && heir->is_usable()) return heir;
  if (since == now && config_.replacement_wait > absl::ZeroDuration()) {
    Note("waiting for another", lost);
  }
  if (now < since + config_.replacement_wait) {
    next_ = std::min(next_, since + config_.replacement_wait);
    return nullptr;
  }
  return hosting.Choose({}, UINT32_MAX);
}

bool Chains::BeginAnew(absl::Time now, ShardId id, proto::Shard& shard, uint32_t target,
                       Hosting& hosting, Epoch published) {
  const NodeId lost(shard.chain(0).node());
  const uint32_t old_loop = std::max(shard.chain(0).loop(), 1u);
  const bool departed = IsLost(shard, hosting);
  // Nobody can bring back what is spoilt, so there is nothing to wait for but a server; that of the
  // unfit replica itself is one again after a moment (Avoid).
  Hosting::Server* heir = departed ? HeirOf(now, lost, hosting) : hosting.Choose({}, UINT32_MAX);
  if (heir == nullptr) return false;
  for (const proto::Replica& replica : shard.chain()) hosting.Remove(replica, ShardBytes(shard));
  // The same loop on a server of the same rank; one with fewer loops takes them in turn.
  const proto::Node* node = FindNode(state_.view(), lost);
  const bool same_rank = departed && node != nullptr && node->rank() == heir->rank;
  const uint32_t loop = same_rank ? 1 + (old_loop - 1) % static_cast<uint32_t>(heir->loops.size())
                                  : heir->LightestLoop();
  Change(shard, published);
  shard.set_generation(shard.chain_epoch());
  shard.clear_chain();
  spoilt_.erase(id);
  std::vector<uint64_t> members;
  while (heir != nullptr && members.size() < target) {
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(heir->node.value());
    replica.set_loop(members.empty() ? loop : heir->LightestLoop());
    hosting.Add(replica, ShardBytes(shard));
    members.push_back(heir->node.value());
    heir = hosting.Choose(members, UINT32_MAX);
  }
  if (members.size() > 1) hosting.Find(members[0])->head_bytes += ShardBytes(shard);
  Note(departed ? absl::StrCat("lost with node ", lost.value(), " begin anew on")
                : absl::StrCat("lost, their only copy on node ", lost.value(),
                               " being unfit, begin anew on"),
       NodeId(members[0]));
  return true;
}

void Chains::KeepMove(ShardId id, proto::Shard& shard, Hosting& hosting, Epoch published) {
  if (leaving_.count(id) > 0) return;
  const proto::Replica joining = *shard.chain().rbegin();
  hosting.Remove(joining, ShardBytes(shard));
  const Hosting::Server& to = *hosting.Find(joining.node());
  int best = -1;
  double best_gain = 0;
  for (int position = 0; position + 1 < shard.chain_size(); ++position) {
    const double gain = MoveGain(shard, position, to, hosting);
    if (gain <= best_gain) continue;
    best = position;
    best_gain = gain;
  }
  if (best < 0) {
    EraseAt(shard, shard.chain_size() - 1);
    Note("not moved after all to", NodeId(joining.node()));
    Change(shard, published);
    return;
  }
  Hosting::Server& from = *hosting.Find(shard.chain(best).node());
  hosting.Remove(shard.chain(best), ShardBytes(shard));
  hosting.Add(joining, ShardBytes(shard));
  if (best == 0 && shard.chain_size() > 2) {
    from.head_bytes -= ShardBytes(shard);
    hosting.Find(shard.chain(1).node())->head_bytes += ShardBytes(shard);
  }
  ++from.leaving;
  leaving_[id] = from.node;
}

void Chains::Fill(proto::Shard& shard, Hosting& hosting, Epoch published) {
  std::vector<uint64_t> staying;
  int draining = -1;
  for (int i = 0; i < shard.chain_size(); ++i) {
    if (IsDraining(hosting, shard.chain(i))) {
      draining = i;
    } else {
      staying.push_back(shard.chain(i).node());
    }
  }
  Hosting::Server* server = hosting.Choose(staying, kJoiningPerServerMax);
  if (server == nullptr) return;
  if (shard.chain_size() >= static_cast<int>(kReplicasMax)) {
    // No room for one more: only here one goes before another is full, and many are left.
    Note("moved away from", NodeId(shard.chain(draining).node()));
    hosting.Remove(shard.chain(draining), ShardBytes(shard));
    EraseAt(shard, draining);
  }
  proto::Replica& replica = *shard.add_chain();
  replica.set_node(server->node.value());
  replica.set_loop(server->LightestLoop());
  replica.set_joining(true);
  hosting.Add(replica, ShardBytes(shard));
  Note("joining on", server->node);
  Change(shard, published);
}

void Chains::Balance(Hosting& hosting, Epoch published) {
  proto::ClusterView& view = *state_.mutable_view();
  for (int i = 0; i < kMovesPerPlanMax; ++i) {
    const auto move = PlanMove(view, leaving_, hosting, kJoiningPerServerMax);
    if (!move) return;
    proto::Shard& shard =
        *std::find_if(view.mutable_tables()->begin(), view.mutable_tables()->end(),
                      [&](const proto::Table& t) { return TableId(t.id()) == move->shard.table; })
             ->mutable_shards(static_cast<int>(move->shard.index.value()));
    const uint64_t bytes = ShardBytes(shard);
    Hosting::Server& from = *hosting.Find(move->from.value());
    Hosting::Server& to = *hosting.Find(move->to.value());
    const int position = PositionIn(shard, move->from.value());
    if (position == 0 && shard.chain_size() > 1) {
      from.head_bytes -= bytes;
      hosting.Find(shard.chain(1).node())->head_bytes += bytes;
    }
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(to.node.value());
    replica.set_loop(to.LightestLoop());
    replica.set_joining(true);
    hosting.Add(replica, bytes);
    hosting.Remove(shard.chain(position), bytes);
    ++from.leaving;
    leaving_[move->shard] = from.node;
    Note(absl::StrCat("moving from ", from.name, " to"), to.node);
    Change(shard, published);
  }
}

}  // namespace covey::scheduler
