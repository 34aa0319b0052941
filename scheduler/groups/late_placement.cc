// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/late_placement.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

std::vector<OpenGroup> OpenGroups(const proto::ClusterView& view) {
  std::vector<OpenGroup> open;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    OpenGroup& candidate = open.emplace_back(OpenGroup{.id = GroupId(group.id()), .labels = {}});
    for (const uint64_t member : group.members()) {
      candidate.labels.push_back(FindNode(view, NodeId(member))->labels());
    }
  }
  return open;
}

}  // namespace

std::vector<LateWorker> LatePlacement::FindLate(absl::Time now) {
  std::set<uint64_t> placed;
  for (const proto::Group& group : state_.view().groups()) {
    placed.insert(group.members().begin(), group.members().end());
  }
  std::vector<LateWorker> late;
  for (const proto::Node& node : state_.view().nodes()) {
    if (node.role() != proto::WORKER || node.state() != proto::Node::ALIVE ||
        node.home_group() != 0 || node.draining() || placed.count(node.id()) > 0) {
      continue;
    }
    const NodeId id(node.id());
    if (away_.IsAway(now, id)) continue;
    const absl::Time since = late_since_.try_emplace(id, now).first->second;
    LateWorker& worker = late.emplace_back();
    worker.worker = {.node = id, .rank = node.rank(), .labels = node.labels()};
    worker.has_waited = now - since >= options_.placement_wait;
  }
  return late;
}

void LatePlacement::Place(absl::Time now, Transaction& change) {
  const proto::ClusterView& view = state_.view();
  if (!state_.job().elastic || state_.job().plans_groups || view.groups().empty()) return;
  const std::vector<LateWorker> late = FindLate(now);
  if (late.empty()) return;

  const uint32_t wanted = state_.job().workers_per_group;
  const Placement placement = PlaceLateWorkers(
      {.group_members = wanted, .may_make_groups = roster_.KnowsSteps()}, OpenGroups(view), late);
  for (const auto& [id, workers] : placement.additions) {
    const proto::Group& group = *FindGroup(view, id);
    roster_.AddNewcomers(group, workers, change);
    change.Add(GroupGrew{.group = id,
                         .joined = NamesOf(view, workers),
                         .generation = group.generation(),
                         .members = group.members_size()});
  }
  for (const std::vector<NodeId>& workers : placement.new_groups) {
    const proto::Group& group = roster_.AddGroup(workers, change);
    change.Add(LateGroupFormed{.group = GroupId(group.id()),
                               .members = NamesOf(view, workers),
                               .first_step = group.first_step()});
  }
  for (const LateWorker& worker : late) {
    const NodeId id = worker.worker.node;
    const proto::Node& node = *FindNode(view, id);
    if (FindActiveGroupOf(view, id) != nullptr) {
      late_since_.erase(id);
    } else if (node.standby().empty()) {
      change.Edit(node).set_standby(
          absl::StrCat("came when the groups had formed: waits for others to make a group of ",
                       wanted, " with, then for a group that takes it in"));
      change.Add(WorkerStandsBy{.worker = node.name()});
    }
  }
}

}  // namespace covey::scheduler
