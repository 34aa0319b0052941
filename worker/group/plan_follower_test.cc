// SPDX-License-Identifier: Apache-2.0
#include "worker/group/plan_follower.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using Kind = PlanFollower::Decision::Kind;
using Phase = PlanFollower::Phase;
using Change = std::function<void(proto::ClusterView&)>;

constexpr uint64_t kSelf = 10;
constexpr uint64_t kGeneration = 4;

// Group 1 has members 10, 11 and 12, which live; node 13 lives too.
proto::ClusterView FirstView() {
  proto::ClusterView view;
  view.set_epoch(1);
  proto::Group& group = *view.add_groups();
  group.set_id(1);
  group.set_generation(kGeneration);
  group.set_state(proto::Group::ACTIVE);
  for (uint64_t id = kSelf; id < kSelf + 4; ++id) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_incarnation(1);
    node.set_role(proto::WORKER);
    node.set_state(proto::Node::ALIVE);
    node.set_rank(static_cast<uint32_t>(id - kSelf));
    node.set_name(absl::StrCat("worker-", id - kSelf));
    if (id < kSelf + 3) group.add_members(id);
  }
  return view;
}

// The changes of which views are made.
Change Departs(int rank, proto::Node::State state) {
  return [rank, state](proto::ClusterView& view) {
    view.mutable_nodes(rank)->set_state(state);
    view.mutable_nodes(rank)->set_departure("silent for 3 s");
  };
}
void NewPlan(proto::ClusterView& view) { view.mutable_groups(0)->set_generation(kGeneration + 1); }
void NewPlanForOthers(proto::ClusterView& view) {
  NewPlan(view);
  view.mutable_groups(0)->clear_members();
  for (const uint64_t member : {11, 12}) view.mutable_groups(0)->add_members(member);
  view.mutable_nodes(0)->set_standby("too slow");
}
void Recovery(proto::ClusterView& view) {
  NewPlan(view);
  view.mutable_groups(0)->set_recovery_generation(kGeneration + 1);
}
void Broken(proto::ClusterView& view) {
  view.mutable_groups(0)->set_state(proto::Group::BROKEN);
  view.mutable_groups(0)->set_reason("worker-1 died");
}
void Done(proto::ClusterView& view) { view.mutable_groups(0)->set_state(proto::Group::DONE); }
void Gone(proto::ClusterView& view) { view.clear_groups(); }
void Drains(proto::ClusterView& view) { view.mutable_nodes(0)->set_draining(true); }

PlanFollower Following(const std::vector<Change>& changes) {
  proto::ClusterView view = FirstView();
  for (const Change& change : changes) change(view);
  auto made = ClusterView::Make(std::move(view));
  COVEY_CHECK(made.ok());
  PlanFollower follower;
  follower.SetView(NodeId(kSelf), *made);
  follower.Follow(GroupId(1), kGeneration, {NodeId(10), NodeId(11), NodeId(12)});
  return follower;
}

TEST(PlanFollowerTest, DecidesFromTheViewAndThePhase) {
  constexpr auto kDead = proto::Node::DEAD;
  constexpr auto kLeft = proto::Node::LEFT;
  struct Row {
    std::string name;
    std::vector<Change> changes;
    // While the generation forms, is ready, and is superseded.
    Kind forming = Kind::kStay;
    Kind ready = Kind::kStay;
    Kind superseded = Kind::kStay;
  };
  const std::vector<Row> rows = {
      {"the plan that is followed", {}},
      {"a death before the new plan", {Departs(1, kDead)}},
      {"a member that left, before the new plan", {Departs(1, kLeft)}},
      {"the death of another worker", {Departs(3, kDead)}},
      {"a newer plan", {NewPlan}, Kind::kStay, Kind::kStay, Kind::kChangeOver},
      {"a newer plan and the death of another worker",
       {NewPlan, Departs(3, kDead)},
       Kind::kStay,
       Kind::kStay,
       Kind::kChangeOver},
      {"a newer plan and a death",
       {NewPlan, Departs(2, kDead)},
       Kind::kInterrupt,
       Kind::kInterrupt,
       Kind::kChangeOver},
      {"a newer plan and a member that left",
       {NewPlan, Departs(2, kLeft)},
       Kind::kInterrupt,
       Kind::kStay,
       Kind::kChangeOver},
      {"a plan without this worker", {NewPlanForOthers}, Kind::kStay, Kind::kStay, Kind::kLeave},
      {"a plan without this worker, and a death",
       {NewPlanForOthers, Departs(1, kDead)},
       Kind::kInterrupt,
       Kind::kInterrupt,
       Kind::kLeave},
      {"a recovery", {Recovery}, Kind::kInterrupt, Kind::kInterrupt, Kind::kChangeOver},
      {"a broken group", {Broken}, Kind::kFail, Kind::kFail, Kind::kStay},
      {"a group that is done", {Done}},
      {"a group that is done, with a newer plan", {NewPlan, Done}, {}, {}, Kind::kLeave},
      {"a group that is done, with a newer plan and a member that left",
       {NewPlan, Done, Departs(1, kLeft)},
       Kind::kInterrupt,
       Kind::kInterrupt,
       Kind::kLeave},
      {"no group any more", {Gone}, Kind::kStay, Kind::kStay, Kind::kLeave},
      {"no group any more, and a member that left",
       {Gone, Departs(1, kLeft)},
       Kind::kInterrupt,
       Kind::kInterrupt,
       Kind::kLeave},
      {"this worker drains", {Drains}},
  };
  for (const Row& row : rows) {
    const PlanFollower follower = Following(row.changes);
    EXPECT_EQ(follower.Decide({.phase = Phase::kForming}).kind, row.forming) << row.name;
    EXPECT_EQ(follower.Decide({.phase = Phase::kReady}).kind, row.ready) << row.name;
    EXPECT_EQ(follower.Decide({.phase = Phase::kSuperseded}).kind, row.superseded) << row.name;
  }
}

TEST(PlanFollowerTest, ADepartedMemberThatIsWaitedForEndsTheGenerationOnceThereIsANewPlan) {
  const PlanFollower::Situation waits{.phase = Phase::kReady, .waits_for_departed = true};
  EXPECT_EQ(Following({}).Decide(waits).kind, Kind::kStay);
  EXPECT_EQ(Following({NewPlan}).Decide(waits).kind, Kind::kInterrupt);
}

TEST(PlanFollowerTest, SaysWhereToGoAndWhy) {
  const PlanFollower moves = Following({NewPlan});
  const auto over = moves.Next(Step(7));
  ASSERT_EQ(over.kind, Kind::kChangeOver);
  EXPECT_EQ(over.group->generation(), kGeneration + 1);
  const auto slow = Following({NewPlanForOthers}).Next(Step(7));
  EXPECT_EQ(slow.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(slow.status.message(), HasSubstr("left group 1 after step 7: too slow"));
  const auto died = Following({Gone, Departs(0, proto::Node::DEAD)}).Next(Step(7));
  EXPECT_THAT(died.status.message(), HasSubstr("silent for 3 s"));
  const auto drained = Following({NewPlanForOthers, Drains}).Next(Step(7));
  EXPECT_EQ(drained.status.code(), absl::StatusCode::kCancelled);
  const auto broken = Following({Broken}).Decide({});
  EXPECT_THAT(broken.status.message(), HasSubstr("is broken: worker-1 died"));
}

TEST(PlanFollowerTest, AMemberThatIsAloneLeavesWhenItDrains) {
  const auto alone = [](proto::ClusterView& view) {
    view.mutable_groups(0)->clear_members();
    view.mutable_groups(0)->add_members(kSelf);
  };
  PlanFollower follower = Following({alone});
  follower.Follow(GroupId(1), kGeneration, {NodeId(kSelf)});
  EXPECT_FALSE(follower.change_pending());
  follower = Following({alone, Drains});
  follower.Follow(GroupId(1), kGeneration, {NodeId(kSelf)});
  EXPECT_TRUE(follower.change_pending());
  EXPECT_EQ(follower.Next(Step(1)).kind, Kind::kLeave);
  EXPECT_FALSE(Following({Drains}).change_pending());  // Others stay; the plan is for them.
}

TEST(PlanFollowerTest, NamesTheMembersThatAreGone) {
  EXPECT_EQ(Following({Departs(1, proto::Node::DEAD)}).FirstLostMember(), nullptr);
  const PlanFollower follower =
      Following({NewPlan, Departs(1, proto::Node::LEFT), Departs(2, proto::Node::DEAD)});
  EXPECT_EQ(follower.FirstLostMember()->id(), 11u);
  EXPECT_EQ(follower.FirstLostMember(proto::Node::DEAD)->id(), 12u);
  EXPECT_EQ(follower.FirstDepartedMember()->id(), 11u);
  EXPECT_EQ(follower.DescribeLoss(), "group 1 has lost worker-1 (silent for 3 s)");
  EXPECT_EQ(Following({Recovery}).DescribeLoss(), "group 1 has lost a member");
}

TEST(PlanFollowerTest, AWorkerWithoutAGroupWaitsForAnActiveOne) {
  EXPECT_EQ(Following({}).FirstPlan()->id(), 1u);
  EXPECT_EQ(Following({Done}).FirstPlan(), nullptr);
  EXPECT_EQ(Following({Gone}).FirstPlan(), nullptr);
  PlanFollower none;
  EXPECT_EQ(none.FirstPlan(), nullptr);
  EXPECT_FALSE(none.follows());
  EXPECT_FALSE(none.change_pending());
}

}  // namespace
}  // namespace covey::worker
