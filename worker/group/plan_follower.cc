// SPDX-License-Identifier: Apache-2.0
#include "worker/group/plan_follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::worker {

void PlanFollower::Follow(GroupId group, uint64_t generation, std::vector<NodeId> members) {
  group_ = group;
  generation_ = generation;
  members_ = std::move(members);
}

bool PlanFollower::change_pending() const {
  if (!follows()) return false;
  const proto::Group* group = view_->GroupOf(self_);
  if (group == nullptr || GroupId(group->id()) != group_ || group->generation() != generation_) {
    return true;
  }
  const proto::Node* node = view_->FindNode(self_);
  return members_.size() == 1 && node != nullptr && node->draining();
}

bool PlanFollower::MayFollow(GroupId group, uint64_t generation) const {
  if (follows() && group == group_ && generation <= generation_) return false;
  const proto::Group* known = view_->FindGroup(group);
  if (known == nullptr || known->generation() < generation) return true;
  const auto& members = known->members();
  return known->generation() == generation &&
         std::find(members.begin(), members.end(), self_.value()) != members.end();
}

bool PlanFollower::IsSuperseded(GroupId group, uint64_t generation) const {
  const proto::Group* known = view_->FindGroup(group);
  return known != nullptr && known->generation() > generation;
}

PlanFollower::Decision PlanFollower::Decide(const Situation& situation) const {
  COVEY_CHECK(follows());
  if (situation.phase == Phase::kSuperseded)
    return change_pending() ? Next(situation.finished) : Decision();
  if (MustLeaveAtOnce(situation)) return {.kind = Decision::Kind::kInterrupt, .status = {}};
  const proto::Group* group = view_->FindGroup(group_);
  if (group != nullptr && group->generation() == generation_ &&
      group->state() == proto::Group::BROKEN) {
    return {
        .kind = Decision::Kind::kFail,
        .status = absl::UnavailableError(absl::StrCat(
            "group ", group_.value(), " is broken: ", group->reason(), "; start the run again"))};
  }
  return {};
}

bool PlanFollower::MustLeaveAtOnce(const Situation& situation) const {
  const proto::Group* group = view_->FindGroup(group_);
  if (group != nullptr && group->recovery_generation() > generation_) return true;
  if (!change_pending()) return false;
  // No result of a group that has ended says when to change over, once one of its members is gone.
  const bool ended = group == nullptr || group->state() != proto::Group::ACTIVE;
  if (ended && FirstLostMember() != nullptr) return true;
  // The last slices of a member that has left in order may still be on their way, unless the
  // members have not even met.
  const bool ready = situation.phase == Phase::kReady;
  if (FirstLostMember(ready ? std::optional(proto::Node::DEAD) : std::nullopt) != nullptr) {
    return true;
  }
  return situation.waits_for_departed;
}

PlanFollower::Decision PlanFollower::Next(Step finished) const {
  const proto::Group* group = view_->GroupOf(self_);
  const proto::Node* node = view_->FindNode(self_);
  const bool drains = node != nullptr && node->draining();
  const bool last_member = group != nullptr && group->members_size() == 1;
  if (group != nullptr && group->state() == proto::Group::ACTIVE && !(drains && last_member)) {
    return {.kind = Decision::Kind::kChangeOver, .status = {}, .group = group};
  }
  const std::string name = view_->NameOf(self_);
  if (drains) {
    return {.kind = Decision::Kind::kLeave,
            .status = absl::CancelledError(
                absl::StrCat(name, " was asked to leave, and has left group ", group_.value(),
                             " after step ", finished.value(), "; the program can end"))};
  }
  std::string reason = "the scheduler's plan has no place for it";
  if (node != nullptr && !node->standby().empty()) reason = node->standby();
  if (node != nullptr && node->state() != proto::Node::ALIVE) reason = node->departure();
  return {.kind = Decision::Kind::kLeave,
          .status = absl::UnavailableError(
              absl::StrCat(name, " left group ", group_.value(), " after step ", finished.value(),
                           ": ", reason, "; the group goes on without it, see `covey status`"))};
}

const proto::Group* PlanFollower::FirstPlan() const {
  const proto::Group* group = view_->GroupOf(self_);
  return group != nullptr && group->state() == proto::Group::ACTIVE ? group : nullptr;
}

const proto::Node* PlanFollower::FirstLostMember(std::optional<proto::Node::State> state) const {
  if (!change_pending()) return nullptr;
  for (const NodeId member : members_) {
    const proto::Node* node = view_->FindNode(member);
    if (node == nullptr || node->state() == proto::Node::ALIVE) continue;
    if (!state || node->state() == *state) return node;
  }
  return nullptr;
}

const proto::Node* PlanFollower::FirstDepartedMember() const {
  for (const NodeId member : members_) {
    const proto::Node* node = view_->FindNode(member);
    if (node != nullptr && node->state() == proto::Node::LEFT) return node;
  }
  return nullptr;
}

std::string PlanFollower::DescribeLoss() const {
  const proto::Node* lost = FirstLostMember();
  return absl::StrCat(
      "group ", group_.value(), " has lost ",
      lost == nullptr ? "a member" : absl::StrCat(lost->name(), " (", lost->departure(), ")"));
}

}  // namespace covey::worker
