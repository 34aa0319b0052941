#include "scheduler/chains.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/cluster/placement.h"
#include "scheduler/nodes.h"

namespace covey::scheduler {
namespace {

// A server that another one cannot reach, or whose content was wrong, is given time to recover, and
// others the chance to take its place.
constexpr absl::Duration kAvoidUnreachable = absl::Seconds(10);
constexpr absl::Duration kAvoidUnfit = absl::Seconds(1);
// Moves planned at a time; the next ones follow when these are reported.
constexpr int kMovesPerPlanMax = 16;

bool IsFull(const proto::Replica& replica) { return !replica.joining(); }

int Position(const proto::Shard& shard, uint64_t node) {
  for (int i = 0; i < shard.chain_size(); ++i) {
    if (shard.chain(i).node() == node) return i;
  }
  return -1;
}

bool IsDraining(const Hosting& hosting, const proto::Replica& replica) {
  const Hosting::Server* server = hosting.Find(replica.node());
  return server != nullptr && server->draining;
}

bool HasJoining(const proto::Shard& shard) {
  return shard.chain_size() > 0 && shard.chain().rbegin()->joining();
}

// Full members that may stay.
uint32_t Staying(const proto::Shard& shard, const Hosting& hosting) {
  return static_cast<uint32_t>(
      std::count_if(shard.chain().begin(), shard.chain().end(),
                    [&](const proto::Replica& r) { return IsFull(r) && !IsDraining(hosting, r); }));
}

// Its last head has departed; nobody holds its content.
bool IsLost(const proto::Shard& shard, const Hosting& hosting) {
  return shard.chain_size() > 0 && hosting.Find(shard.chain(0).node()) == nullptr;
}

void EraseAt(proto::Shard& shard, int position) {
  shard.mutable_chain()->erase(shard.chain().begin() + position);
}

}  // namespace

// A chain that wants a replica.
struct Chains::Needy {
  proto::Shard* shard;
  ShardId id;
  int full;
};

void Chains::Change(proto::Shard& shard, Epoch published) {
  proto::ClusterView& view = *state_.mutable_view();
  if (view.epoch() == published.value()) view.set_epoch(published.value() + 1);
  shard.set_chain_epoch(view.epoch());
}

void Chains::Note(absl::string_view what, NodeId id, uint64_t shards) {
  const proto::Node* node = FindNode(state_.view(), id);
  notes_[absl::StrCat(
      what, " ", node == nullptr ? absl::StrCat("node ", id.value()) : node->name())] += shards;
}

std::string Chains::TakeNotes() {
  std::vector<std::string> parts;
  for (const auto& [phrase, count] : std::exchange(notes_, {})) {
    parts.push_back(absl::StrCat(count, " ", phrase));
  }
  return parts.empty() ? "" : absl::StrCat("shards: ", absl::StrJoin(parts, ", "));
}

uint32_t Chains::TargetOf(const proto::Table& table, const Hosting& hosting) const {
  const auto servers = static_cast<uint32_t>(std::max<size_t>(1, hosting.usable()));
  return std::min(ReplicasWanted(table.spec()), servers);
}

void Chains::Avoid(Hosting& hosting, absl::Time now) {
  for (auto at = avoided_until_.begin(); at != avoided_until_.end();) {
    Hosting::Server* server = hosting.Find(at->first.value());
    if (server == nullptr || at->second <= now) {
      at = avoided_until_.erase(at);
      continue;
    }
    server->avoided = true;
    next_ = std::min(next_, at->second);
    ++at;
  }
}

void Chains::Report(absl::Time now, NodeId sender, const proto::ReplicaReport& report,
                    Epoch published) {
  proto::ClusterView& view = *state_.mutable_view();
  const auto table = std::find_if(view.mutable_tables()->begin(), view.mutable_tables()->end(),
                                  [&](const proto::Table& t) { return t.id() == report.table(); });
  if (table == view.mutable_tables()->end() ||
      report.shard() >= static_cast<uint32_t>(table->shards_size())) {
    return;
  }
  proto::Shard& shard = *table->mutable_shards(static_cast<int>(report.shard()));
  const int position = Position(shard, report.node());
  const int reporter = Position(shard, sender.value());
  if (shard.generation() != report.generation() || shard.chain_epoch() != report.chain_epoch() ||
      position < 0 || reporter < 0) {
    return;
  }
  proto::Replica& replica = *shard.mutable_chain(position);
  const NodeId node(report.node());
  const bool comes_before = reporter < position && IsFull(shard.chain(reporter));
  const auto full = std::count_if(shard.chain().begin(), shard.chain().end(), IsFull);
  const bool is_last_full = IsFull(replica) && full == 1;
  switch (report.kind()) {
    case proto::ReplicaReport::READY:
      if (!comes_before || IsFull(replica)) return;
      replica.set_joining(false);
      Note("full on", node);
      break;
    case proto::ReplicaReport::UNREACHABLE:
      if (!comes_before || is_last_full) return;
      EraseAt(shard, position);
      Note("unreachable on", node);
      avoided_until_[node] = now + kAvoidUnreachable;
      break;
    case proto::ReplicaReport::UNFIT:
      if ((!comes_before && reporter != position) || is_last_full) return;
      EraseAt(shard, position);
      Note("unfit on", node);
      avoided_until_[node] = std::max(avoided_until_[node], now + kAvoidUnfit);
      break;
    default:
      return;
  }
  Change(shard, published);
  due_ = true;
}

void Chains::RemoveDeparted(proto::Shard& shard, Epoch published) {
  const auto& view = state_.view();
  const auto is_alive = [&](const proto::Replica& replica) {
    const proto::Node* node = FindNode(view, NodeId(replica.node()));
    return node != nullptr && node->state() == proto::Node::ALIVE;
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
  uint32_t staying = Staying(shard, hosting);
  while (static_cast<uint32_t>(shard.chain_size()) > target && staying >= target) {
    const auto leaving = leaving_.find(id);
    int victim = shard.chain_size() - 1;
    if (leaving != leaving_.end() && Position(shard, leaving->second.value()) >= 0) {
      victim = Position(shard, leaving->second.value());
    }
    for (int i = shard.chain_size() - 1; i >= 0; --i) {
      if (IsDraining(hosting, shard.chain(i))) victim = i;
    }
    if (!IsDraining(hosting, shard.chain(victim))) {
      if (staying == target) break;
      --staying;
    }
    Note("moved away from", NodeId(shard.chain(victim).node()));
    EraseAt(shard, victim);
    Change(shard, published);
  }
  leaving_.erase(id);
}

void Chains::Load(Hosting& hosting) {
  for (const proto::Table& table : state_.view().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const auto leaving = leaving_.find({TableId(table.id()), ShardIndex(shard.index())});
      const uint64_t leaver = leaving == leaving_.end() ? 0 : leaving->second.value();
      Hosting::Server* head = nullptr;
      int holders = 0;
      for (const proto::Replica& replica : shard.chain()) {
        Hosting::Server* server = hosting.Find(replica.node());
        if (replica.node() == leaver) {
          if (server != nullptr) ++server->leaving;
          continue;
        }
        hosting.Add(replica, ShardBytes(shard));
        if (head == nullptr || head->draining) head = server;
        holders += IsFull(replica) || leaver != 0 ? 1 : 0;
      }
      if (head != nullptr && holders > 1) head->head_bytes += ShardBytes(shard);
    }
  }
}

bool Chains::BeginAnew(absl::Time now, proto::Shard& shard, uint32_t target, Hosting& hosting,
                       Epoch published) {
  const NodeId lost(shard.chain(0).node());
  const proto::Node* node = FindNode(state_.view(), lost);
  const proto::Node* holder =
      node == nullptr ? nullptr : FindHolder(state_.view(), proto::SERVER, node->rank());
  Hosting::Server* heir = holder == nullptr ? nullptr : hosting.Find(holder->id());
  uint32_t loop = 0;
  if (heir != nullptr && heir->is_usable()) {
    // The same loop; an heir with fewer of them takes them in turn.
    loop =
        1 + (std::max(shard.chain(0).loop(), 1u) - 1) % static_cast<uint32_t>(heir->loops.size());
  } else {
    const absl::Time since = lost_since_.try_emplace(lost, now).first->second;
    if (since == now && config_.replacement_wait > absl::ZeroDuration()) {
      Note("waiting for another", lost);
    }
    if (now < since + config_.replacement_wait) {
      next_ = std::min(next_, since + config_.replacement_wait);
      return false;
    }
    heir = hosting.Choose({}, UINT32_MAX);
    if (heir == nullptr) return false;
    loop = heir->LightestLoop();
  }
  Change(shard, published);
  shard.set_generation(shard.chain_epoch());
  shard.clear_chain();
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
  Note(absl::StrCat("lost with node ", lost.value(), " begin anew on"), NodeId(members[0]));
  return true;
}

bool Chains::KeepMove(ShardId id, proto::Shard& shard, Hosting& hosting, Epoch published) {
  if (leaving_.count(id) > 0) return true;
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
    return false;
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
  return true;
}

bool Chains::Fill(proto::Shard& shard, Hosting& hosting, Epoch published) {
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
  if (server == nullptr) return false;
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
  return true;
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
    const int position = Position(shard, move->from.value());
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

std::string Chains::Settle(absl::Time now, Epoch published) {
  if (!due_ && now < next_) return "";
  due_ = false;
  next_ = absl::InfiniteFuture();
  proto::ClusterView& view = *state_.mutable_view();
  Hosting hosting(view);
  Avoid(hosting, now);

  Leaving known = std::exchange(leaving_, {});  // without those of tables that are gone
  for (proto::Table& table : *view.mutable_tables()) {
    const uint32_t target = TargetOf(table, hosting);
    for (proto::Shard& shard : *table.mutable_shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      if (const auto at = known.find(id); at != known.end()) leaving_.insert(*at);
      RemoveDeparted(shard, published);
      Trim(id, shard, target, hosting, published);
    }
  }
  Load(hosting);

  bool is_whole = true;
  std::vector<Needy> needy;
  std::set<NodeId> still_lost;
  for (proto::Table& table : *view.mutable_tables()) {
    const uint32_t target = TargetOf(table, hosting);
    for (proto::Shard& shard : *table.mutable_shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      if (IsLost(shard, hosting)) {
        const NodeId lost(shard.chain(0).node());
        if (!BeginAnew(now, shard, target, hosting, published)) {
          still_lost.insert(lost);
          is_whole = false;
        }
        continue;
      }
      const uint32_t staying = Staying(shard, hosting);
      if (staying >= target) {
        if (HasJoining(shard)) KeepMove(id, shard, hosting, published);
        continue;
      }
      is_whole = false;
      leaving_.erase(id);
      if (HasJoining(shard) || hosting.usable() == 0) continue;
      const auto full = std::count_if(shard.chain().begin(), shard.chain().end(), IsFull);
      needy.push_back({.shard = &shard, .id = id, .full = static_cast<int>(full)});
    }
  }
  for (auto at = lost_since_.begin(); at != lost_since_.end();) {
    at = still_lost.count(at->first) > 0 ? std::next(at) : lost_since_.erase(at);
  }

  // Those with the fewest replicas first.
  std::sort(needy.begin(), needy.end(), [](const Needy& a, const Needy& b) {
    return std::tie(a.full, a.id) < std::tie(b.full, b.id);
  });
  for (const Needy& chain : needy) Fill(*chain.shard, hosting, published);
  if (is_whole) Balance(hosting, published);
  return TakeNotes();
}

}  // namespace covey::scheduler
