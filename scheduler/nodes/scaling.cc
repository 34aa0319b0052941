// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/scaling.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// When a job is ended, its processes get their signals in any order. If no server has begun to
// leave after this time, the scheduler alone ends, and the job goes on.
constexpr absl::Duration kServersFollowMax = absl::Seconds(1);

bool Stays(const proto::Node& node, proto::Role role) {
  return node.role() == role && node.state() == proto::Node::ALIVE && !node.draining();
}

size_t ShardsOf(const proto::ClusterView& view, uint64_t node) {
  size_t shards = 0;
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      shards += std::count_if(shard.chain().begin(), shard.chain().end(),
                              [&](const proto::Replica& r) { return r.node() == node; });
    }
  }
  return shards;
}

absl::Status CheckCount(absl::string_view role, uint32_t wanted) {
  if (wanted >= 1 && wanted <= kNodesMax / 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("scale: ", wanted, " ", role, " are wanted; 1 to ", kNodesMax / 2,
                   " are possible; to end the job, stop its processes"));
}

// The nodes of the role beyond `wanted`, highest rank first.
std::vector<const proto::Node*> Surplus(const proto::ClusterView& view, proto::Role role,
                                        uint32_t wanted) {
  std::vector<const proto::Node*> staying;
  for (const proto::Node& node : view.nodes()) {
    if (Stays(node, role)) staying.push_back(&node);
  }
  std::sort(staying.begin(), staying.end(),
            [](const auto* a, const auto* b) { return a->rank() > b->rank(); });
  staying.resize(staying.size() - std::min<size_t>(staying.size(), wanted));
  return staying;
}

}  // namespace

absl::StatusOr<Epoch> Scaling::Drain(const proto::DrainRequest& request, absl::string_view why) {
  const proto::ClusterView& view = state_.view();
  const auto node =
      std::find_if(view.nodes().begin(), view.nodes().end(), [&](const proto::Node& candidate) {
        return candidate.name() == request.node() && candidate.state() == proto::Node::ALIVE &&
               (candidate.role() == proto::SERVER || candidate.role() == proto::WORKER);
      });
  if (node == view.nodes().end()) {
    return absl::NotFoundError(
        absl::StrCat("drain '", request.node().substr(0, kNameBytesMax),
                     "': no server or worker of this name is alive; the status names those that "
                     "are, for example server-0"));
  }
  const bool is_so = node->draining() != request.cancel();
  if (is_so && !request.must_leave()) return state_.epoch();
  const bool is_last = std::none_of(view.nodes().begin(), view.nodes().end(), [&](const auto& n) {
    return n.id() != node->id() && Stays(n, proto::SERVER);
  });
  const bool takes_all = !request.cancel() && node->role() == proto::SERVER && is_last &&
                         ShardsOf(view, node->id()) > 0;
  if (takes_all && !(request.must_leave() && has_store_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("drain ", node->name(), ": it holds ", ShardsOf(view, node->id()),
                     " shards, and there is no other server that stays: start one first"));
  }
  if (is_so && (!takes_all || view.has_closing())) return state_.epoch();
  Transaction change(state_);
  if (takes_all && !view.has_closing()) {
    change.EditView().mutable_closing();
    change.Add(JobCloses{.node = node->name()});
  }
  if (request.cancel()) {
    change.Add(DrainCancelled{.node = node->name(), .why = std::string(why)});
  } else {
    change.Add(DrainRequested{.node = node->name(), .why = std::string(why)});
  }
  SetDraining(*node, !request.cancel(), change);
  change.Commit();
  return state_.epoch();
}

absl::StatusOr<Epoch> Scaling::Scale(const proto::ScaleRequest& request, absl::string_view why) {
  const proto::ClusterView& view = state_.view();
  std::vector<const proto::Node*> surplus;
  JobScaled scaled{.why = std::string(why)};
  const auto want = [&](proto::Role role, uint32_t count) {
    for (const proto::Node* node : Surplus(view, role, count)) surplus.push_back(node);
  };
  if (request.has_servers()) {
    if (auto status = CheckCount("servers", request.servers()); !status.ok()) return status;
    scaled.servers = request.servers();
    want(proto::SERVER, request.servers());
  }
  if (request.has_workers()) {
    if (auto status = CheckCount("workers", request.workers()); !status.ok()) return status;
    scaled.workers = request.workers();
    want(proto::WORKER, request.workers());
  }
  const uint32_t servers = scaled.servers.value_or(view.wanted_servers());
  const uint32_t workers = scaled.workers.value_or(view.wanted_workers());
  if (surplus.empty() && servers == view.wanted_servers() && workers == view.wanted_workers()) {
    return state_.epoch();
  }
  for (const proto::Node* node : surplus) scaled.draining.push_back(node->name());
  Transaction change(state_);
  change.EditView().set_wanted_servers(servers);
  change.EditView().set_wanted_workers(workers);
  change.Add(std::move(scaled));
  for (const proto::Node* node : surplus) SetDraining(*node, true, change);
  change.Commit();
  return state_.epoch();
}

bool Scaling::SchedulerMayEnd(absl::Duration waited) const {
  if (!has_store_) return true;
  bool any_leaves = false;
  bool any_stays = false;
  for (const proto::Node& node : state_.view().nodes()) {
    if (node.role() != proto::SERVER || node.state() != proto::Node::ALIVE) continue;
    (node.draining() ? any_leaves : any_stays) = true;
  }
  return !any_leaves && (!any_stays || waited >= kServersFollowMax);
}

void Scaling::Tick() {
  const proto::ClusterView& view = state_.view();
  if (!view.has_closing()) return;
  const auto stays = [](const proto::Node& node) { return Stays(node, proto::SERVER); };
  const auto staying = std::find_if(view.nodes().begin(), view.nodes().end(), stays);
  if (staying == view.nodes().end()) return;
  Transaction change(state_);
  change.Add(JobStaysOpen{.node = staying->name()});
  change.EditView().clear_closing();
  change.Commit();
}

void Scaling::SetDraining(const proto::Node& node, bool draining, Transaction& change) {
  proto::Node& edited = change.Edit(node);
  edited.set_draining(draining);
  if (node.role() != proto::WORKER) return;
  if (draining) {
    groups_.OnDrain(NodeId(node.id()), change);
  } else {
    // The worker is placed like a late one.
    edited.clear_standby();
  }
}

}  // namespace covey::scheduler
