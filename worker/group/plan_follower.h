// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"

namespace covey::worker {

// What the newest view means for one member of a group: whether its generation goes on, is left at
// once, or is over, and which plan comes next.
//
//   forming, ready ── no newer plan, or no member is lost ──────▶ kStay
//                  ── a newer plan, and a member is lost ───────▶ kInterrupt, then Next
//                  ── the view says that the group is broken ───▶ kFail
//   superseded ────── no newer plan yet ────────────────────────▶ kStay
//              ────── a newer plan ─────────────────────────────▶ as Next
//   Next ──────────── an ACTIVE group has a place for it ───────▶ kChangeOver
//        ──────────── none, or it drains alone ─────────────────▶ kLeave
//
// A newer plan alone interrupts nothing: members change over together, after the same step.
// Pure: answers depend on the view, the plan followed and the arguments.
class PlanFollower {
 public:
  PlanFollower() : view_(ClusterView::Empty()) {}

  void SetView(NodeId self, std::shared_ptr<const ClusterView> view) {
    self_ = self;
    view_ = std::move(view);
  }
  const ClusterView& view() const { return *view_; }
  NodeId self() const { return self_; }

  // Follows this plan from now on; the members are those of the plan.
  void Follow(GroupId group, uint64_t generation, std::vector<NodeId> members);
  void FollowNone() { members_.clear(); }
  bool follows() const { return !members_.empty(); }

  // The newest view has another plan for this worker: other members, another group, or none; or it
  // is the only member, and drains. False when it follows none.
  bool change_pending() const;

  // A message of this generation of a group may be of one that this worker will be in: its plan is
  // not known yet, or has a place for it.
  bool MayFollow(GroupId group, uint64_t generation) const;
  // The group has a newer plan than this one.
  bool IsSuperseded(GroupId group, uint64_t generation) const;

  // What the caller knows of the generation that is followed.
  enum class Phase {
    kForming,     // its members have not all met
    kReady,       // they have
    kSuperseded,  // they never will: some member has a newer plan
  };
  struct Situation {
    Phase phase = Phase::kForming;
    // A member has left the generation for a newer one, and collectives still wait for it.
    bool waits_for_departed = false;
    // The newest step that this worker has finished. For messages.
    Step finished;
  };
  struct Decision {
    enum class Kind { kStay, kInterrupt, kFail, kChangeOver, kLeave };
    Kind kind = Kind::kStay;
    // kFail: UNAVAILABLE, names the group and the reason. kLeave: as Next.
    absl::Status status;
    // kChangeOver; belongs to the view.
    const proto::Group* group = nullptr;
  };
  // Precondition: follows().
  Decision Decide(const Situation& situation) const;
  // Where this worker goes when it leaves its generation: kChangeOver or kLeave. `finished`: as in
  // Situation.
  //   UNAVAILABLE: it is in no group any more; says why. CANCELLED: the same, because it was asked
  //   to go.
  Decision Next(Step finished) const;
  // The plan that a worker without a group takes part in; nullptr: none.
  const proto::Group* FirstPlan() const;

  // The first member in order of rank that is not ALIVE any more, when there is a newer plan;
  // `state`: that is in this state. nullptr: none.
  const proto::Node* FirstLostMember(std::optional<proto::Node::State> state = std::nullopt) const;
  // The first member that has left in order, and will not meet the others again; nullptr: none.
  const proto::Node* FirstDepartedMember() const;
  // "group 1 has lost worker-2 (silent for 2.6 s)".
  std::string DescribeLoss() const;

 private:
  bool MustLeaveAtOnce(const Situation& situation) const;

  NodeId self_;
  std::shared_ptr<const ClusterView> view_;
  GroupId group_;
  uint64_t generation_ = 0;
  std::vector<NodeId> members_;
};

}  // namespace covey::worker
