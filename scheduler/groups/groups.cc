#include "scheduler/groups/groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/grouping/group_planner.h"
#include "scheduler/groups/late_workers.h"
#include "scheduler/state/nodes.h"

namespace covey::scheduler {
namespace {

bool Contains(const proto::Group& group, NodeId node) {
  return std::find(group.members().begin(), group.members().end(), node.value()) !=
         group.members().end();
}

PlannedWorker Planned(const proto::Node& node) {
  return {.node = NodeId(node.id()), .rank = node.rank(), .labels = node.labels()};
}

std::string Sentence(const std::vector<std::string>& parts) { return absl::StrJoin(parts, "; "); }

}  // namespace

void Groups::Hear(NodeId worker, uint64_t step) {
  heard_.insert(worker);
  if (step > 0) newcomers_.erase(worker);
  highest_step_ = std::max(highest_step_, step);
}

void Groups::NoteMissing() {
  proto::ClusterView& view = *state_.mutable_view();
  if (!view.groups().empty()) return;
  view.set_waiting_for(MissingNodes(config_, view, Expected::kServersAndWorkers));
}

Groups::Decision Groups::Joined(absl::Time now) {
  if (state_.view().groups().empty()) return FormFirst();
  return Place(now);
}

Groups::Decision Groups::FormFirst() {
  NoteMissing();
  proto::ClusterView& view = *state_.mutable_view();
  if (!view.waiting_for().empty() || config_.workers() == 0) return "";
  std::vector<PlannedWorker> workers;
  for (const proto::Node& node : view.nodes()) {
    if (node.role() == proto::WORKER && node.state() == proto::Node::ALIVE &&
        node.rank() < config_.workers()) {
      workers.push_back(Planned(node));
    }
  }
  for (const std::vector<NodeId>& members : PlanGroups(std::move(workers), config_.groups)) {
    AddGroup(members);
  }
  return absl::StrCat("everyone is here: ", view.groups_size(), " groups formed by labels");
}

proto::Group& Groups::AddGroup(const std::vector<NodeId>& members) {
  proto::ClusterView& view = *state_.mutable_view();
  proto::Group& group = *view.add_groups();
  group.set_id(static_cast<uint32_t>(view.groups_size()));
  group.set_generation(1);
  for (NodeId member : members) {
    group.add_members(member.value());
    FindNode(view, member)->clear_standby();
    heard_.insert(member);
  }
  group.set_state(proto::Group::ACTIVE);
  return group;
}

Groups::Decision Groups::Departed(absl::Time now, const proto::Node& node) {
  const NodeId id(node.id());
  late_since_.erase(id);
  heard_.erase(id);
  const bool newcomer = newcomers_.erase(id) > 0;
  proto::Group* group = ActiveGroupOf(id);
  if (group == nullptr) return "";
  std::vector<NodeId> staying;
  bool all_left = true;
  for (const uint64_t member : group->members()) {
    const proto::Node::State state = FindNode(state_.view(), NodeId(member))->state();
    if (state == proto::Node::ALIVE) staying.push_back(NodeId(member));
    all_left = all_left && state == proto::Node::LEFT;
  }
  if (node.state() != proto::Node::DEAD) {
    if (all_left) {
      group->set_state(proto::Group::DONE);
    } else {
      left_since_.try_emplace(GroupId(group->id()), now);
    }
    return "";
  }
  if (staying.empty()) {
    group->set_state(proto::Group::BROKEN);
    group->set_reason(absl::StrCat(Describe(node), " ", node.departure()));
    return "";
  }
  SetMembers(*group, staying);
  if (group->state() != proto::Group::ACTIVE) {
    return absl::StrCat("group ", group->id(), " ends with ", node.name(),
                        ": nobody is left who knows how far it has come");
  }
  // Members of a generation that the newcomer was in see that it is dead.
  if (!newcomer) group->set_recovery_generation(group->generation());
  return absl::StrCat("group ", group->id(), " goes on at once without ", node.name(),
                      " as generation ", group->generation(), " of ", group->members_size(),
                      " members");
}

Groups::Decision Groups::Drain(NodeId worker) {
  proto::Group* group = ActiveGroupOf(worker);
  if (group == nullptr || group->members_size() == 1) return "";
  TakeOut(worker);
  FindNode(*state_.mutable_view(), worker)->set_standby("it drains");
  return absl::StrCat("group ", group->id(), " goes on without it as generation ",
                      group->generation());
}

Groups::Decision Groups::Tick(absl::Time now) {
  std::vector<Decision> decisions = Reform(now);
  if (Decision placed = Place(now); !placed.empty()) decisions.push_back(std::move(placed));
  if (decisions.empty()) return "";
  state_.mutable_view()->set_epoch(state_.view().epoch() + 1);
  return Sentence(decisions);
}

std::vector<Groups::Decision> Groups::Reform(absl::Time now) {
  std::vector<Decision> decisions;
  for (proto::Group& group : *state_.mutable_view()->mutable_groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    std::vector<NodeId> staying;
    std::vector<NodeId> left;
    for (const uint64_t member : group.members()) {
      const bool has_left = FindNode(state_.view(), NodeId(member))->state() == proto::Node::LEFT;
      (has_left ? left : staying).push_back(NodeId(member));
    }
    if (left.empty()) continue;
    // After a restart the time counts anew.
    const absl::Time since = left_since_.try_emplace(GroupId(group.id()), now).first->second;
    if (now - since < config_.regroup_after) continue;
    SetMembers(group, staying);
    decisions.push_back(absl::StrCat("group ", group.id(), " goes on without ", NamesOf(left),
                                     ", left ", absl::FormatDuration(now - since),
                                     " ago, as generation ", group.generation()));
  }
  return decisions;
}

Groups::Decision Groups::Place(absl::Time now) {
  proto::ClusterView& view = *state_.mutable_view();
  if (!config_.elastic || view.groups().empty()) return "";
  std::set<uint64_t> placed;
  std::vector<OpenGroup> open;
  for (const proto::Group& group : view.groups()) {
    placed.insert(group.members().begin(), group.members().end());
    if (group.state() != proto::Group::ACTIVE) continue;
    OpenGroup& candidate = open.emplace_back(OpenGroup{.id = GroupId(group.id()), .labels = {}});
    for (const uint64_t member : group.members()) {
      candidate.labels.push_back(FindNode(view, NodeId(member))->labels());
    }
  }
  std::vector<LateWorker> late;
  for (const proto::Node& node : view.nodes()) {
    if (node.role() != proto::WORKER || node.state() != proto::Node::ALIVE ||
        node.home_group() != 0 || node.draining() || placed.count(node.id()) > 0) {
      continue;
    }
    const absl::Time since = late_since_.try_emplace(NodeId(node.id()), now).first->second;
    late.push_back({.worker = Planned(node), .has_waited = now - since >= config_.placement_wait});
  }
  if (late.empty()) return "";

  const Placement placement = PlaceLateWorkers(
      {.group_members = config_.workers_per_group, .may_make_groups = KnowsSteps()},
      std::move(open), late);
  std::vector<Decision> decisions;
  for (const auto& [id, workers] : placement.additions) {
    proto::Group& group = *Find(id);
    newcomers_.insert(workers.begin(), workers.end());
    std::vector<NodeId> members(workers);
    for (const uint64_t member : group.members()) members.push_back(NodeId(member));
    SetMembers(group, members);
    decisions.push_back(absl::StrCat("group ", group.id(), " takes in ", NamesOf(workers),
                                     " as generation ", group.generation(), " of ",
                                     group.members_size(), " members"));
  }
  for (const std::vector<NodeId>& workers : placement.new_groups) {
    proto::Group& group = AddGroup(workers);
    group.set_first_step(highest_step_ + 1);
    decisions.push_back(absl::StrCat("group ", group.id(), " formed of ", NamesOf(workers),
                                     ", waited for from step ", group.first_step(), " on"));
  }
  for (const LateWorker& worker : late) {
    const NodeId id = worker.worker.node;
    proto::Node& node = *FindNode(view, id);
    if (ActiveGroupOf(id) != nullptr) {
      late_since_.erase(id);
    } else if (node.standby().empty()) {
      node.set_standby(
          absl::StrCat("came when the groups had formed: waits for others to make a group of ",
                       config_.workers_per_group, " with, then for a group that takes it in"));
      // A decision like any other: whoever changes the view says so.
      decisions.push_back(absl::StrCat(node.name(), " stands by"));
    }
  }
  return Sentence(decisions);
}

void Groups::SetMembers(proto::Group& group, const std::vector<NodeId>& members) {
  left_since_.erase(GroupId(group.id()));
  std::vector<PlannedWorker> workers;
  for (NodeId member : members) {
    proto::Node& node = *FindNode(*state_.mutable_view(), member);
    if (node.state() != proto::Node::ALIVE) continue;
    node.clear_standby();
    workers.push_back(Planned(node));
  }
  const bool all_new = std::all_of(
      workers.begin(), workers.end(),
      [this](const PlannedWorker& worker) { return newcomers_.count(worker.node) > 0; });
  if (all_new) {
    // Without any worker, or none that knows how far the group has come: those are placed anew.
    auto& listed = *group.mutable_members();
    for (const PlannedWorker& worker : workers) {
      newcomers_.erase(worker.node);
      listed.erase(std::remove(listed.begin(), listed.end(), worker.node.value()), listed.end());
    }
    group.set_state(proto::Group::DONE);
    return;
  }
  group.set_generation(group.generation() + 1);
  group.clear_members();
  group.clear_shares();
  group.clear_minimum_members();
  group.clear_grace_ms();
  const std::vector<std::vector<NodeId>> ring = PlanGroups(std::move(workers), 1);
  for (NodeId member : ring.front()) group.add_members(member.value());
}

GroupId Groups::TakeOut(NodeId worker) {
  proto::Group* group = ActiveGroupOf(worker);
  if (group == nullptr) return GroupId();
  std::vector<NodeId> members;
  for (const uint64_t member : group->members()) {
    if (NodeId(member) != worker) members.push_back(NodeId(member));
  }
  SetMembers(*group, members);
  return GroupId(group->id());
}

Groups::Decision Groups::Move(absl::Time now, NodeId worker, GroupId to,
                              const std::string& evidence) {
  proto::ClusterView& view = *state_.mutable_view();
  proto::Node& node = *FindNode(view, worker);
  const GroupId from = TakeOut(worker);
  if (node.home_group() == 0) node.set_home_group(from.value());
  proto::Group* group = FindActive(to);
  if (group == nullptr || GroupId(node.home_group()) == to) node.clear_home_group();
  Decision decision =
      absl::StrCat(node.name(), " leaves ",
                   from == GroupId() ? "its bench" : absl::StrCat("group ", from.value()));
  if (group != nullptr) {
    std::vector<NodeId> members = {worker};
    for (const uint64_t member : group->members()) members.push_back(NodeId(member));
    SetMembers(*group, members);
    absl::StrAppend(&decision, " for group ", to.value(), ", now of generation ",
                    group->generation());
  } else if (const Decision placed = Place(now); !placed.empty()) {
    absl::StrAppend(&decision, "; ", placed);
  }
  view.set_epoch(view.epoch() + 1);
  return absl::StrCat(decision, ": ", evidence);
}

Groups::Decision Groups::Evict(NodeId worker, const std::string& evidence) {
  proto::ClusterView& view = *state_.mutable_view();
  proto::Node& node = *FindNode(view, worker);
  const GroupId from = TakeOut(worker);
  if (from == GroupId()) return "";
  if (node.home_group() == 0) node.set_home_group(from.value());
  node.set_standby(absl::StrCat("evicted from group ", from.value(), ": ", evidence));
  view.set_epoch(view.epoch() + 1);
  return absl::StrCat(node.name(), " evicted from group ", from.value(),
                      ", which goes on as generation ", Find(from)->generation(), ": ", evidence);
}

Groups::Decision Groups::SetShares(GroupId id, const std::vector<uint32_t>& shares,
                                   const std::string& evidence) {
  proto::Group* group = FindActive(id);
  if (group == nullptr ||
      (!shares.empty() && static_cast<int>(shares.size()) != group->members_size())) {
    return "";
  }
  group->mutable_shares()->Assign(shares.begin(), shares.end());
  state_.mutable_view()->set_epoch(state_.view().epoch() + 1);
  return absl::StrCat("group ", id.value(), " divides its samples ",
                      shares.empty() ? "evenly again" : absl::StrJoin(shares, ":"), ": ", evidence);
}

Groups::Decision Groups::SetMinimumMembers(GroupId id, uint32_t minimum, absl::Duration grace,
                                           const std::string& evidence) {
  proto::Group* group = FindActive(id);
  if (group == nullptr) return "";
  group->set_minimum_members(minimum);
  group->set_grace_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(grace)));
  state_.mutable_view()->set_epoch(state_.view().epoch() + 1);
  return absl::StrCat("group ", id.value(), " waits for ",
                      minimum == 0
                          ? "everybody again"
                          : absl::StrCat(minimum, " of ", group->members_size(),
                                         " members and then ", absl::FormatDuration(grace)),
                      ": ", evidence);
}

proto::Group* Groups::Find(GroupId id) {
  // Ids are given in order from 1, and groups stay listed.
  auto& groups = *state_.mutable_view()->mutable_groups();
  return id.value() == 0 || id.value() > static_cast<uint32_t>(groups.size())
             ? nullptr
             : &groups[static_cast<int>(id.value()) - 1];
}

proto::Group* Groups::FindActive(GroupId id) {
  proto::Group* group = Find(id);
  return group != nullptr && group->state() == proto::Group::ACTIVE ? group : nullptr;
}

proto::Group* Groups::ActiveGroupOf(NodeId worker) {
  for (proto::Group& group : *state_.mutable_view()->mutable_groups()) {
    if (group.state() == proto::Group::ACTIVE && Contains(group, worker)) return &group;
  }
  return nullptr;
}

std::string Groups::NamesOf(const std::vector<NodeId>& nodes) const {
  return absl::StrJoin(nodes, ", ", [this](std::string* out, NodeId id) {
    absl::StrAppend(out, FindNode(state_.view(), id)->name());
  });
}

bool Groups::KnowsSteps() const {
  return std::all_of(
      state_.view().groups().begin(), state_.view().groups().end(),
      [this](const proto::Group& group) {
        return group.state() != proto::Group::ACTIVE ||
               std::any_of(group.members().begin(), group.members().end(),
                           [this](uint64_t member) { return heard_.count(NodeId(member)) > 0; });
      });
}

}  // namespace covey::scheduler
