#include "scheduler/placement/chains.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/placement.h"
#include "scheduler/placement/chain_members.h"
#include "scheduler/state/nodes.h"

namespace covey::scheduler {
namespace {

// A server that another one cannot reach, or whose content was wrong, is given time to recover, and
// others the chance to take its place.
constexpr absl::Duration kAvoidUnreachable = absl::Seconds(10);
constexpr absl::Duration kAvoidUnfit = absl::Seconds(1);

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

bool Chains::Report(absl::Time now, NodeId sender, const proto::ReplicaReport& report,
                    Epoch published) {
  proto::ClusterView& view = *state_.mutable_view();
  const auto table = std::find_if(view.mutable_tables()->begin(), view.mutable_tables()->end(),
                                  [&](const proto::Table& t) { return t.id() == report.table(); });
  if (table == view.mutable_tables()->end() ||
      report.shard() >= static_cast<uint32_t>(table->shards_size())) {
    return false;
  }
  proto::Shard& shard = *table->mutable_shards(static_cast<int>(report.shard()));
  const int position = PositionIn(shard, report.node());
  const int reporter = PositionIn(shard, sender.value());
  if (shard.generation() != report.generation() || shard.chain_epoch() != report.chain_epoch() ||
      position < 0 || reporter < 0) {
    return false;
  }
  proto::Replica& replica = *shard.mutable_chain(position);
  const NodeId node(report.node());
  const ShardId id{TableId(report.table()), ShardIndex(report.shard())};
  const bool comes_before = reporter < position && IsFull(shard.chain(reporter));
  const auto full = std::count_if(shard.chain().begin(), shard.chain().end(), IsFull);
  const bool is_last_full = IsFull(replica) && full == 1;
  switch (report.kind()) {
    case proto::ReplicaReport::READY:
      if (!comes_before || IsFull(replica)) return false;
      replica.set_joining(false);
      Note("full on", node);
      if (const auto at = spoilt_.find(id); at != spoilt_.end()) {
        const int unfit = PositionIn(shard, at->second.node.value());
        if (unfit >= 0 && at->second.generation == shard.generation()) EraseAt(shard, unfit);
        spoilt_.erase(at);
      }
      break;
    case proto::ReplicaReport::UNREACHABLE:
      if (!comes_before || is_last_full) return false;
      EraseAt(shard, position);
      Note("unreachable on", node);
      avoided_until_[node] = now + kAvoidUnreachable;
      break;
    case proto::ReplicaReport::UNFIT:
      if (!comes_before && reporter != position) return false;
      if (is_last_full) {
        // Nothing to leave the chain to: Settle begins the shard anew.
        spoilt_[id] = {.node = node, .generation = shard.generation()};
        avoided_until_[node] = std::max(avoided_until_[node], now + kAvoidUnfit);
        due_ = true;
        return false;
      }
      EraseAt(shard, position);
      Note("unfit on", node);
      avoided_until_[node] = std::max(avoided_until_[node], now + kAvoidUnfit);
      break;
    default:
      return false;
  }
  Change(shard, published);
  due_ = true;
  return true;
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

std::string Chains::Settle(absl::Time now, Epoch published) {
  if (!due_ && now < next_) return "";
  due_ = false;
  next_ = absl::InfiniteFuture();
  Hosting hosting(state_.view());
  Avoid(hosting, now);
  TakeOut(hosting, published);
  Load(hosting);
  if (Repair(now, hosting, published)) Balance(hosting, published);
  return TakeNotes();
}

void Chains::TakeOut(const Hosting& hosting, Epoch published) {
  const Leaving known =
      std::exchange(leaving_, {});  // Those of tables that are gone are forgotten.
  for (proto::Table& table : *state_.mutable_view()->mutable_tables()) {
    const uint32_t target = TargetOf(table, hosting);
    for (proto::Shard& shard : *table.mutable_shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      if (const auto at = known.find(id); at != known.end()) leaving_.insert(*at);
      RemoveDeparted(shard, hosting, published);
      Trim(id, shard, target, hosting, published);
    }
  }
}

bool Chains::Repair(absl::Time now, Hosting& hosting, Epoch published) {
  bool is_whole = true;
  std::vector<Needy> needy;
  std::set<NodeId> still_lost;
  for (proto::Table& table : *state_.mutable_view()->mutable_tables()) {
    const uint32_t target = TargetOf(table, hosting);
    for (proto::Shard& shard : *table.mutable_shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      if (IsLost(shard, hosting) || IsSpoilt(id, shard)) {
        const NodeId lost(shard.chain(0).node());
        if (BeginAnew(now, id, shard, target, hosting, published)) continue;
        still_lost.insert(lost);
      } else if (StayingIn(shard, hosting) >= target) {
        if (HasJoining(shard)) KeepMove(id, shard, hosting, published);
        continue;
      } else if (!HasJoining(shard) && hosting.usable() > 0) {
        const auto full = std::count_if(shard.chain().begin(), shard.chain().end(), IsFull);
        needy.push_back({.shard = &shard, .id = id, .full = static_cast<int>(full)});
      }
      is_whole = false;
      leaving_.erase(id);
    }
  }
  for (auto at = lost_since_.begin(); at != lost_since_.end();) {
    at = still_lost.count(at->first) > 0 ? std::next(at) : lost_since_.erase(at);
  }
  std::erase_if(fenced_until_, [now](const auto& fence) { return fence.second <= now; });
  // Those with the fewest replicas first.
  std::sort(needy.begin(), needy.end(), [](const Needy& a, const Needy& b) {
    return std::tie(a.full, a.id) < std::tie(b.full, b.id);
  });
  for (const Needy& chain : needy) Fill(*chain.shard, hosting, published);
  return is_whole;
}

}  // namespace covey::scheduler
