#include "scheduler/nodes/fleet.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/limits.h"
#include "scheduler/state/nodes.h"

namespace covey::scheduler {
namespace {

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

}  // namespace

absl::StatusOr<Fleet::Change> Fleet::Drain(const proto::DrainRequest& request,
                                           absl::string_view why) {
  proto::ClusterView& view = *state_.mutable_view();
  const auto node = std::find_if(
      view.mutable_nodes()->begin(), view.mutable_nodes()->end(),
      [&](const proto::Node& candidate) {
        return candidate.name() == request.node() && candidate.state() == proto::Node::ALIVE &&
               (candidate.role() == proto::SERVER || candidate.role() == proto::WORKER);
      });
  if (node == view.mutable_nodes()->end()) {
    return absl::NotFoundError(
        absl::StrCat("drain '", request.node().substr(0, kNameBytesMax),
                     "': no server or worker of this name is alive; the status names those that "
                     "are, for example server-0"));
  }
  if (node->draining() != request.cancel()) return Change{.epoch = Epoch(view.epoch())};
  const bool is_last = std::none_of(view.nodes().begin(), view.nodes().end(), [&](const auto& n) {
    return n.id() != node->id() && Stays(n, proto::SERVER);
  });
  if (!request.cancel() && node->role() == proto::SERVER && is_last) {
    if (const size_t shards = ShardsOf(view, node->id()); shards > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("drain ", node->name(), ": it holds ", shards,
                       " shards, and there is no other server that stays: start one first"));
    }
  }
  view.set_epoch(view.epoch() + 1);
  const std::string placed = SetDraining(*node, !request.cancel());
  return Change{.epoch = Epoch(view.epoch()),
                .decision = absl::StrCat(node->name(),
                                         request.cancel() ? " stays after all: " : " drains: ", why,
                                         placed.empty() ? "" : "; ", placed)};
}

absl::StatusOr<Fleet::Change> Fleet::Scale(const proto::ScaleRequest& request,
                                           absl::string_view why) {
  if (request.has_servers()) {
    if (auto status = CheckCount("servers", request.servers()); !status.ok()) return status;
  }
  if (request.has_workers()) {
    if (auto status = CheckCount("workers", request.workers()); !status.ok()) return status;
  }
  proto::ClusterView& view = *state_.mutable_view();
  const auto before = std::make_pair(view.wanted_servers(), view.wanted_workers());
  std::vector<std::string> wanted;
  std::vector<std::string> going;
  const auto drain = [&](proto::Role role, uint32_t count) {
    if (std::string names = DrainSurplus(role, count); !names.empty()) going.push_back(names);
  };
  if (request.has_servers()) {
    view.set_wanted_servers(request.servers());
    wanted.push_back(absl::StrCat(request.servers(), " servers"));
    drain(proto::SERVER, request.servers());
  }
  if (request.has_workers()) {
    view.set_wanted_workers(request.workers());
    wanted.push_back(absl::StrCat(request.workers(), " workers"));
    drain(proto::WORKER, request.workers());
  }
  if (going.empty() && before == std::make_pair(view.wanted_servers(), view.wanted_workers())) {
    return Change{.epoch = Epoch(view.epoch())};
  }
  view.set_epoch(view.epoch() + 1);
  return Change{
      .epoch = Epoch(view.epoch()),
      .decision = absl::StrCat(
          "wanted: ", absl::StrJoin(wanted, " and "), ", ", why,
          going.empty() ? "" : absl::StrCat("; ", absl::StrJoin(going, ", "), " to drain"))};
}

std::string Fleet::DrainSurplus(proto::Role role, uint32_t wanted) {
  std::vector<proto::Node*> staying;
  for (proto::Node& node : *state_.mutable_view()->mutable_nodes()) {
    if (Stays(node, role)) staying.push_back(&node);
  }
  std::sort(staying.begin(), staying.end(),
            [](const auto* a, const auto* b) { return a->rank() > b->rank(); });
  staying.resize(staying.size() - std::min<size_t>(staying.size(), wanted));
  std::vector<std::string> names;
  for (proto::Node* node : staying) {
    SetDraining(*node, true);
    names.push_back(node->name());
  }
  return absl::StrJoin(names, ", ");
}

std::string Fleet::SetDraining(proto::Node& node, bool draining) {
  node.set_draining(draining);
  if (node.role() != proto::WORKER) return "";
  if (draining) return groups_.Drain(NodeId(node.id()));
  // It is placed like one that comes late.
  node.clear_standby();
  return "";
}

}  // namespace covey::scheduler
