// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/lost_shards.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/placement/chain_members.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

google::protobuf::RepeatedPtrField<proto::CutStep> GroupsAtLoss(
    const proto::ClusterView& view, const proto::NewestSnapshot& begins_with) {
  google::protobuf::RepeatedPtrField<proto::CutStep> groups;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    proto::CutStep& last = *groups.Add();
    last.set_group(group.id());
    const auto in_cut =
        std::find_if(begins_with.groups().begin(), begins_with.groups().end(),
                     [&](const proto::CutStep& step) { return step.group() == group.id(); });
    if (in_cut != begins_with.groups().end()) last.set_step(in_cut->step());
  }
  return groups;
}

// Whether a node has given the values with which the table began. A table that began with those of
// a snapshot can begin with them again.
bool HasGivenValues(const proto::Table& table) {
  return table.spec().initializer().kind() == proto::Initializer::GIVEN &&
         !table.has_initialization() && !table.has_origin();
}

// A shard of the table has lost what it held. If a call gives the table its initial values, that
// call gives those of all its tables again: they get the epoch of the change (Initializations).
void RestartInitialization(const proto::ClusterView& view, const proto::Table& table,
                           Transaction& change) {
  const proto::Initialization lost = table.initialization();
  if (lost.node() == 0) return;
  for (const proto::Table& other : view.tables()) {
    const proto::Initialization& named = other.initialization();
    if (named.node() != lost.node() || named.call() != lost.call()) continue;
    change.Edit(other).mutable_initialization()->set_epoch(change.epoch().value());
  }
}

}  // namespace

NodeId LostShards::ClearCorrupt(ShardId shard, uint64_t generation) {
  const auto at = corrupt_.find(shard);
  if (at == corrupt_.end()) return NodeId();
  const NodeId node = at->second.generation == generation ? at->second.node : NodeId();
  corrupt_.erase(at);
  return node;
}

bool LostShards::IsCorrupt(ShardId id, const proto::Shard& shard) const {
  const auto at = corrupt_.find(id);
  if (at == corrupt_.end() || at->second.generation != shard.generation()) return false;
  // False when another replica has become full, or the unfit one has left.
  return std::all_of(shard.chain().begin(), shard.chain().end(), [&](const proto::Replica& r) {
    return IsFull(r) == (r.node() == at->second.node.value());
  });
}

void LostShards::BeginRound() {
  next_round_ = absl::InfiniteFuture();
  waited_for_.clear();
}

void LostShards::EndRound(absl::Time now) {
  std::erase_if(lost_since_,
                [this](const auto& lost) { return waited_for_.count(lost.first) == 0; });
  std::erase_if(fenced_until_, [now](const auto& fence) { return fence.second <= now; });
}

std::string LostShards::WhyStop(const proto::Table& table, bool restores) const {
  if (table.has_initialization()) return "";
  if (options_.on_loss == OnLoss::kStop) return "no server has its content, and --on-loss is stop";
  if (restores || !HasGivenValues(table)) return "";
  return "no server has its content, no snapshot has the table, and its first values were given by "
         "a program that cannot be asked again";
}

ServerLoads::Server* LostShards::ReplacementFor(absl::Time now, NodeId departed,
                                                ChainEditor& editor) {
  ServerLoads& loads = editor.loads();
  const proto::Node* node = FindNode(editor.view(), departed);
  const proto::Node* holder =
      node == nullptr ? nullptr : FindHolder(editor.view(), proto::SERVER, node->rank());
  ServerLoads::Server* same_rank = holder == nullptr ? nullptr : loads.Find(holder->id());
  const absl::Time since = lost_since_.try_emplace(departed, now).first->second;
  const auto fenced = fenced_until_.find(departed);
  if (fenced != fenced_until_.end() && now < fenced->second) {
    if (since == now) editor.Count(ShardChange::Kind::kAwaitingLeaseEnd, departed);
    next_round_ = std::min(next_round_, fenced->second);
    return nullptr;
  }
  if (same_rank != nullptr && same_rank->is_usable()) return same_rank;
  if (since == now && options_.replacement_wait > absl::ZeroDuration()) {
    editor.Count(ShardChange::Kind::kAwaitingReturn, departed);
  }
  if (now < since + options_.replacement_wait) {
    next_round_ = std::min(next_round_, since + options_.replacement_wait);
    return nullptr;
  }
  return loads.Choose({}, UINT32_MAX);
}

bool LostShards::Reinitialize(absl::Time now, const proto::Table& table, const proto::Shard& shard,
                              uint32_t target, const proto::NewestSnapshot& snapshot,
                              ChainEditor& editor) {
  ServerLoads& loads = editor.loads();
  const NodeId lost(shard.chain(0).node());
  const bool departed = IsLost(shard, loads);
  // No server can restore a corrupt shard, so it waits only for a usable server. The server of the
  // unfit replica itself is usable again after a moment (Chains::Avoid).
  ServerLoads::Server* server =
      departed ? ReplacementFor(now, lost, editor) : loads.Choose({}, UINT32_MAX);
  if (server == nullptr) {
    waited_for_.insert(lost);
    return false;
  }
  const bool restores = options_.on_loss == OnLoss::kRestore && !snapshot.folder().empty();
  if (const std::string why = WhyStop(table, restores); !why.empty()) {
    if (why_stop_.empty()) {
      const ShardLostForGood event{
          .table = table.spec().name(), .shard = ShardIndex(shard.index()), .reason = why};
      why_stop_ = Describe(Event(event));
      editor.change().Add(event);
    }
    waited_for_.insert(lost);
    return false;
  }
  for (const proto::Replica& replica : shard.chain()) loads.Remove(replica, ShardBytes(shard));
  // The same loop on a server of the same rank; on a server with fewer loops, the shards are
  // distributed in turn.
  const proto::Node* node = FindNode(editor.view(), lost);
  const bool same_rank = departed && node != nullptr && node->rank() == server->rank;
  const uint32_t old_loop = std::max(shard.chain(0).loop(), 1u);
  const uint32_t loop = same_rank ? 1 + (old_loop - 1) % static_cast<uint32_t>(server->loops.size())
                                  : server->LightestLoop();
  proto::Shard& edited = editor.Edit(shard);
  edited.set_generation(edited.chain_epoch());
  const proto::NewestSnapshot& begins_with =
      restores ? snapshot : proto::NewestSnapshot::default_instance();
  edited.set_origin(begins_with.folder());
  edited.clear_groups_at_loss();
  if (!table.has_initialization()) {
    *edited.mutable_groups_at_loss() = GroupsAtLoss(editor.view(), begins_with);
  }
  edited.clear_chain();
  corrupt_.erase({TableId(table.id()), ShardIndex(shard.index())});
  std::vector<uint64_t> members;
  while (server != nullptr && members.size() < target) {
    proto::Replica& replica = *edited.add_chain();
    replica.set_node(server->node.value());
    replica.set_loop(members.empty() ? loop : server->LightestLoop());
    loads.Add(replica, ShardBytes(shard));
    members.push_back(server->node.value());
    server = loads.Choose(members, UINT32_MAX);
  }
  if (members.size() > 1) loads.Find(members[0])->head_bytes += ShardBytes(shard);
  const auto kind = !edited.origin().empty() ? ShardChange::Kind::kRestoredLost
                    : departed               ? ShardChange::Kind::kReinitializedLost
                                             : ShardChange::Kind::kReinitializedCorrupt;
  editor.Count(kind, NodeId(members[0]), absl::StrCat("node ", lost.value()));
  RestartInitialization(editor.view(), table, editor.change());
  return true;
}

}  // namespace covey::scheduler
