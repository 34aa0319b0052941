// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/groups.h"

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/groups/ended_groups.h"
#include "scheduler/groups/group_adjustments.h"
#include "scheduler/groups/worker_placement.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// One server (node 2) and two groups of two workers: nodes 3, 4 and 5, 6.
class GroupsTest : public ::testing::Test {
 protected:
  explicit GroupsTest(uint64_t steps_before = 0) {
    state_.record().set_steps_before(steps_before);
    membership_.Start(kStart);
    Register(proto::SERVER);
    for (int i = 0; i < 4; ++i) Register(proto::WORKER, i < 2 ? "z/a" : "z/b");
  }
  ~GroupsTest() override {
    const auto made = ClusterView::Make(view());
    EXPECT_TRUE(made.ok()) << made.status();
  }

  NodeId Register(proto::Role role, const std::string& labels = "") {
    proto::RegisterRequest request;
    request.set_job_name("job");
    request.set_role(role);
    request.set_rank(-1);
    request.set_labels(labels);
    if (role == proto::SERVER) {
      request.add_endpoints("");
      request.add_endpoints("tcp://127.0.0.1:1");
    }
    const auto registration = membership_.Register(now_, request, Incarnation(++incarnation_));
    EXPECT_TRUE(registration.ok()) << registration.status();
    membership_.OnRegistrationAnswered(now_, registration->node);
    last_ = state_.News();
    return registration->node;
  }
  void Beat(uint64_t node, uint64_t step) {
    proto::HeartbeatRequest beat;
    beat.mutable_progress()->set_step(step);
    membership_.OnHeartbeat(now_, NodeId(node), beat);
  }
  // A worker that has finished one step of its own tells the newest step of its group.
  void BeatOfGroup(NodeId node, uint32_t group, uint64_t group_step) {
    proto::HeartbeatRequest beat;
    beat.mutable_progress()->set_step(1);
    beat.mutable_progress()->set_group(group);
    beat.mutable_progress()->set_group_step(group_step);
    membership_.OnHeartbeat(now_, node, beat);
  }
  std::string Tick(absl::Duration later) {
    now_ += later;
    state_.News();
    groups_.Tick(now_);
    return state_.News();
  }
  std::string Drain(NodeId id) {
    state_.News();
    Transaction change(state_);
    change.Edit(node(id)).set_draining(true);
    change.Add(DrainRequested{.node = node(id).name(), .why = "x"});
    groups_.OnDrain(id, change);
    change.Commit();
    return state_.News();
  }
  // Returns the decisions of an adjustment.
  template <typename Adjust>
  std::string After(const Adjust& adjust) {
    state_.News();
    adjust();
    return state_.News();
  }
  // All nodes but `node` send heartbeats until it is declared dead.
  void LetDie(uint64_t node) {
    std::vector<Membership::Death> deaths;
    while (deaths.empty()) {
      now_ += absl::Milliseconds(500);
      for (const proto::Node& other : view().nodes()) {
        if (other.id() == node || other.state() != proto::Node::ALIVE) continue;
        membership_.OnHeartbeat(now_, NodeId(other.id()), proto::HeartbeatRequest());
      }
      deaths = membership_.DeclareDead(now_);
    }
    ASSERT_EQ(deaths.size(), 1u);
    ASSERT_EQ(deaths[0].node, NodeId(node));
  }
  const proto::ClusterView& view() const { return state_.view(); }
  const proto::Group& group(int id) const { return view().groups(id - 1); }
  const proto::Node& node(NodeId id) const {
    return view().nodes(static_cast<int>(id.value()) - 2);
  }

  absl::Time now_ = kStart;
  uint64_t incarnation_ = 100;
  std::string last_;
  TestState state_{{.name = "job", .servers = 1, .groups = 2, .workers_per_group = 2}};
  AwayWorkers away_{state_};
  Groups groups_{{}, state_, away_};
  GroupAdjustments adjustments_{state_, groups_};
  Membership membership_{{}, state_, groups_};
};

TEST_F(GroupsTest, TheFirstFormByLabels) {
  ASSERT_EQ(view().groups_size(), 2);
  EXPECT_THAT(group(1).members(), ElementsAre(3, 4));
  EXPECT_THAT(group(2).members(), ElementsAre(5, 6));
  EXPECT_EQ(group(1).first_step(), 0u);
  EXPECT_EQ(Tick(absl::Hours(1)), "");
}

TEST_F(GroupsTest, WhenAllLeaveOneAfterTheOtherTheGroupIsDoneAndNothingElse) {
  membership_.Leave(now_, NodeId(3), "done");
  EXPECT_EQ(Tick(absl::Milliseconds(900)), "");
  membership_.Leave(now_, NodeId(4), "done");
  EXPECT_EQ(group(1).state(), proto::Group::DONE);
  EXPECT_EQ(group(1).generation(), 1u);
  EXPECT_EQ(Tick(absl::Seconds(5)), "");
}

TEST_F(GroupsTest, AGroupGoesOnWithoutAMemberThatLeft) {
  adjustments_.SetShares(GroupId(1), {1000, 500}, "x");
  adjustments_.SetMinimumMembers(GroupId(1), 1, absl::Milliseconds(5), "x");
  membership_.Leave(now_, NodeId(3), "signal 15");
  EXPECT_EQ(Tick(absl::Milliseconds(500)), "");
  const uint64_t epoch = view().epoch();
  EXPECT_THAT(Tick(absl::Milliseconds(500)),
              HasSubstr("group 1 goes on without worker-0, left 1s ago, as generation 2"));
  EXPECT_EQ(view().epoch(), epoch + 1);
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  EXPECT_EQ(group(1).state(), proto::Group::ACTIVE);
  EXPECT_THAT(group(1).shares(), IsEmpty());
  EXPECT_EQ(group(1).minimum_members(), 0u);
  membership_.Leave(now_, NodeId(4), "done");
  EXPECT_EQ(group(1).state(), proto::Group::DONE);
}

TEST_F(GroupsTest, AfterARestartTheTimeSinceALeaveCountsAnew) {
  membership_.Leave(now_, NodeId(3), "done");
  Groups restarted({}, state_, away_);
  now_ += absl::Seconds(5);
  EXPECT_EQ(After([&] { restarted.Tick(now_); }), "");
  EXPECT_THAT(After([&] { restarted.Tick(now_ + absl::Seconds(1)); }),
              HasSubstr("goes on without worker-0"));
}

TEST_F(GroupsTest, WhenAMemberDiesTheOthersGoOnAtOnceAndDoTheirStepAgain) {
  adjustments_.SetShares(GroupId(1), {1000, 500}, "x");
  adjustments_.SetMinimumMembers(GroupId(1), 1, absl::Milliseconds(5), "x");
  const uint64_t epoch = view().epoch();
  LetDie(3);
  EXPECT_EQ(view().epoch(), epoch + 1);
  EXPECT_EQ(group(1).state(), proto::Group::ACTIVE);
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  EXPECT_EQ(group(1).generation(), 2u);
  EXPECT_EQ(group(1).recovery_generation(), 2u);
  EXPECT_THAT(group(1).shares(), IsEmpty());
  EXPECT_EQ(group(1).minimum_members(), 0u);
  EXPECT_EQ(group(2).generation(), 1u);
  EXPECT_EQ(group(2).recovery_generation(), 0u);
  EXPECT_EQ(Tick(absl::Milliseconds(100)), "");
}

TEST_F(GroupsTest, TheDeathOfTheLastMemberBreaksTheGroup) {
  LetDie(3);
  LetDie(4);
  EXPECT_EQ(group(1).state(), proto::Group::BROKEN);
  EXPECT_THAT(group(1).reason(), HasSubstr("worker-1"));
  EXPECT_EQ(group(1).generation(), 2u);
}

TEST_F(GroupsTest, AMemberThatHasLeftDoesNotGoOn) {
  membership_.Leave(now_, NodeId(4), "done");
  LetDie(3);
  EXPECT_EQ(group(1).state(), proto::Group::BROKEN);
}

TEST_F(GroupsTest, ANewcomerThatDiesBeforeItsFirstStepDoesNotInterruptTheGroup) {
  membership_.Leave(now_, NodeId(3), "");
  Tick(absl::Seconds(1));
  const NodeId late = Register(proto::WORKER, "z/a");
  EXPECT_THAT(group(1).members(), ElementsAre(late.value(), 4));
  Beat(late.value(), 0);
  LetDie(late.value());
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  EXPECT_EQ(group(1).generation(), 4u);
  EXPECT_EQ(group(1).recovery_generation(), 0u);
  // A newcomer that has finished a step is an ordinary member.
  const NodeId later = Register(proto::WORKER, "z/a");
  Beat(later.value(), 0);
  Beat(later.value(), 1);
  LetDie(later.value());
  EXPECT_EQ(group(1).recovery_generation(), 6u);
}

TEST_F(GroupsTest, ANewcomerIsOneUntilItTakesAStepOfThisGroup) {
  membership_.Leave(now_, NodeId(3), "");
  Tick(absl::Seconds(1));
  const NodeId late = Register(proto::WORKER, "z/a");
  // It has trained in a group that has ended, and follows its new plan before it meets the others.
  BeatOfGroup(late, 2, 119);
  BeatOfGroup(late, 2, 120);
  BeatOfGroup(late, 1, 120);
  BeatOfGroup(late, 1, 120);
  LetDie(4);
  EXPECT_EQ(group(1).state(), proto::Group::DONE) << "it does not know the step of its group";
}

TEST_F(GroupsTest, ANewcomerThatHasMetItsGroupGoesOnWithIt) {
  membership_.Leave(now_, NodeId(3), "");
  Tick(absl::Seconds(1));
  const NodeId late = Register(proto::WORKER, "z/a");
  BeatOfGroup(late, 1, 120);
  BeatOfGroup(late, 1, 57);
  LetDie(4);
  EXPECT_EQ(group(1).state(), proto::Group::ACTIVE);
  EXPECT_THAT(group(1).members(), ElementsAre(late.value()));
}

TEST_F(GroupsTest, NewcomersDoNotGoOnWithAGroupThatNobodyElseIsIn) {
  membership_.Leave(now_, NodeId(3), "");
  Tick(absl::Seconds(1));
  const NodeId late = Register(proto::WORKER, "z/a");
  LetDie(4);
  EXPECT_EQ(group(1).state(), proto::Group::DONE);
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  // It is placed like a late worker.
  Tick(absl::Milliseconds(500));
  Tick(absl::Seconds(20));
  EXPECT_THAT(group(2).members(), Contains(late.value()));
}

// Group 1 has one member that knows its step, node 4, and a newcomer.
class GroupOfNewcomersTest : public GroupsTest {
 protected:
  GroupOfNewcomersTest() {
    membership_.Leave(now_, NodeId(3), "");
    Tick(absl::Seconds(1));
    late_ = Register(proto::WORKER, "z/a");
  }
  void ExpectEnd(const std::string& news) {
    EXPECT_EQ(group(1).state(), proto::Group::DONE);
    EXPECT_THAT(news,
                HasSubstr("group 1 ends: no member is left that knows how far the group has come"));
    EXPECT_THAT(news, Not(HasSubstr("group 1 goes on")));
    EXPECT_THAT(news, Not(HasSubstr("which goes on")));
  }

  NodeId late_;
};

TEST_F(GroupOfNewcomersTest, EndsWhenTheLastOldMemberDrains) { ExpectEnd(Drain(NodeId(4))); }

TEST_F(GroupOfNewcomersTest, EndsWhenTheLastOldMemberLeaves) {
  membership_.Leave(now_, NodeId(4), "");
  ExpectEnd(Tick(absl::Seconds(1)));
}

TEST_F(GroupOfNewcomersTest, EndsWhenTheLastOldMemberIsEvicted) {
  const std::string news = After([&] { adjustments_.Evict(NodeId(4), "too slow"); });
  ExpectEnd(news);
  EXPECT_THAT(news, HasSubstr("worker-1 evicted from group 1: too slow"));
}

TEST_F(GroupOfNewcomersTest, EndsWhenTheLastOldMemberIsMoved) {
  ExpectEnd(After([&] { adjustments_.Move(now_, NodeId(4), GroupId(2), "too slow"); }));
}

TEST_F(GroupOfNewcomersTest, AWorkerThatWasToldThatItsGroupHasEndedIsNotPlaced) {
  proto::HeartbeatRequest beat;
  beat.mutable_away()->set_reason("left out of its group");
  beat.mutable_away()->set_left_ms(60'000);
  LetDie(4);
  away_.OnHeartbeat(now_, late_, beat);
  EXPECT_EQ(Tick(absl::Seconds(30)), "");
  EXPECT_EQ(Tick(absl::Seconds(20)), "");
  // It is back, and waits as long as any other late worker.
  away_.OnHeartbeat(now_, late_, proto::HeartbeatRequest());
  EXPECT_THAT(Tick(absl::Seconds(1)), HasSubstr("stands by"));
  EXPECT_THAT(Tick(absl::Seconds(10)), HasSubstr("group 2 takes in worker-0"));
}

TEST_F(GroupsTest, AWorkerThatDrainsIsPlannedOutAndNotPlacedAgain) {
  const uint64_t epoch = view().epoch();
  EXPECT_THAT(Drain(NodeId(3)), HasSubstr("group 1 goes on without worker-0 as generation 2"));
  EXPECT_EQ(view().epoch(), epoch + 1) << "once, with the drain";
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  EXPECT_EQ(group(1).recovery_generation(), 0u);
  EXPECT_EQ(Tick(absl::Seconds(60)), "");
  EXPECT_EQ(node(NodeId(3)).state(), proto::Node::ALIVE);
  // The only member leaves in order.
  EXPECT_EQ(Drain(NodeId(4)), "worker-1 drains: x");
  EXPECT_EQ(group(1).state(), proto::Group::ACTIVE);
  EXPECT_THAT(group(1).members(), ElementsAre(4));
}

TEST_F(GroupsTest, ALateWorkerTakesTheNearestFreePlace) {
  membership_.Leave(now_, NodeId(3), "");
  membership_.Leave(now_, NodeId(6), "");
  Tick(absl::Seconds(1));
  const uint64_t epoch = view().epoch();
  const NodeId late = Register(proto::WORKER, "z/b");
  EXPECT_EQ(view().epoch(), epoch + 1);
  EXPECT_THAT(last_, HasSubstr("group 2 takes in worker-0 as generation 3 of 2 members"));
  EXPECT_THAT(group(2).members(), ElementsAre(late.value(), 5));
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  EXPECT_EQ(node(late).standby(), "");
}

TEST_F(GroupsTest, ALateWorkerWaitsForOthersThenTheyMakeAGroup) {
  Beat(4, 17);
  Beat(5, 23);
  const NodeId first = Register(proto::WORKER);
  EXPECT_THAT(node(first).standby(), HasSubstr("came when the groups had formed"));
  EXPECT_EQ(Tick(absl::Seconds(9)), "");
  const NodeId second = Register(proto::WORKER);
  EXPECT_THAT(last_, HasSubstr("group 3 formed of worker-4, worker-5, waited for from step 24 on"));
  ASSERT_EQ(view().groups_size(), 3);
  EXPECT_THAT(group(3).members(), ElementsAre(first.value(), second.value()));
  EXPECT_EQ(group(3).first_step(), 24u);
  EXPECT_EQ(group(3).generation(), 1u);
  EXPECT_EQ(node(first).standby(), "");
  EXPECT_EQ(group(1).generation(), 1u);
}

TEST_F(GroupsTest, ANewGroupIsWaitedForAfterTheStepsOfGroupsNotOfProcesses) {
  // The members of group 1 have been replaced: their processes have counted from 1 again.
  BeatOfGroup(NodeId(3), 1, 1500);
  Register(proto::WORKER);
  Register(proto::WORKER);
  EXPECT_THAT(last_, HasSubstr("waited for from step 1501 on"));
}

// The job continues the 1000 steps of an earlier one.
class RestoredGroupsTest : public GroupsTest {
 protected:
  RestoredGroupsTest() : GroupsTest(1000) {}
};

TEST_F(RestoredGroupsTest, ALateGroupIsNoInitialGroup) {
  EXPECT_EQ(group(1).first_step(), 1001u);
  EXPECT_EQ(group(2).first_step(), 1001u);
  Register(proto::WORKER);
  Register(proto::WORKER);
  ASSERT_EQ(view().groups_size(), 3);
  EXPECT_EQ(group(3).first_step(), 1002u);
  EXPECT_EQ((*ClusterView::Make(view()))->initial_groups(), 2u);
}

TEST_F(GroupsTest, GroupsThatEndedLongAgoLeaveTheView) {
  for (const uint64_t id : {3, 4, 5, 6}) Beat(id, 10);
  const int kept = 2 + static_cast<int>(kEndedGroupsKept);
  for (uint32_t i = 0; i < 2 * kEndedGroupsKept; ++i) {
    const NodeId first = Register(proto::WORKER);
    const NodeId second = Register(proto::WORKER);
    ASSERT_THAT(last_, HasSubstr(absl::StrCat("group ", 3 + i, " formed")));
    membership_.Leave(now_, first, "");
    membership_.Leave(now_, second, "");
    EXPECT_LE(view().groups_size(), kept + 1);
    // Times of members that left some time ago are kept by group.
    Tick(absl::Milliseconds(10));
  }
  EXPECT_EQ(view().groups(0).id(), 1u);
  EXPECT_EQ(view().groups(1).id(), 2u);
  EXPECT_GT(view().groups(2).id(), kEndedGroupsKept);
  EXPECT_EQ(FindGroup(view(), GroupId(3)), nullptr);
}

TEST_F(GroupsTest, ALateWorkerThatHasWaitedMakesTheSmallestGroupLarger) {
  const NodeId late = Register(proto::WORKER, "z/b");
  EXPECT_EQ(Tick(absl::Seconds(9)), "");
  EXPECT_THAT(Tick(absl::Seconds(1)), HasSubstr("group 2 takes in worker-4 as generation 2 of 3"));
  EXPECT_EQ(group(2).members_size(), 3);
  EXPECT_EQ(node(late).standby(), "");
}

TEST_F(GroupsTest, OtherWaitsHoldForWorkersThatWait) {
  Register(proto::WORKER, "z/b");
  EXPECT_EQ(Tick(absl::Seconds(3)), "");
  groups_.SetOptions({.placement_wait = absl::Seconds(4), .regroup_after = absl::Seconds(5)});
  EXPECT_THAT(Tick(absl::Seconds(1)), HasSubstr("group 2 takes in worker-4"));
  membership_.Leave(now_, NodeId(3), "");
  EXPECT_EQ(Tick(absl::Seconds(4)), "");
  EXPECT_THAT(Tick(absl::Seconds(1)), HasSubstr("group 1 goes on without worker-0"));
}

TEST_F(GroupsTest, ARestartedSchedulerMakesNoGroupBeforeItKnowsTheSteps) {
  Groups groups({}, state_, away_);
  Membership restarted({}, state_, groups);
  restarted.Start(now_);
  proto::RegisterRequest request;
  request.set_job_name("job");
  request.set_role(proto::WORKER);
  request.set_rank(-1);
  for (uint64_t incarnation : {201, 202}) {
    ASSERT_TRUE(restarted.Register(now_, request, Incarnation(incarnation)).ok());
  }
  EXPECT_EQ(view().groups_size(), 2);
  proto::HeartbeatRequest beat;
  beat.mutable_progress()->set_step(40);
  restarted.OnHeartbeat(now_, NodeId(3), beat);
  EXPECT_EQ(After([&] { groups.Tick(now_); }), "");
  beat.mutable_progress()->set_step(39);
  restarted.OnHeartbeat(now_, NodeId(6), beat);
  EXPECT_THAT(After([&] { groups.Tick(now_); }), HasSubstr("from step 41 on"));
}

TEST_F(GroupsTest, AMovedWorkerRemembersItsHomeUntilItIsBack) {
  const uint64_t epoch = view().epoch();
  EXPECT_THAT(After([&] { adjustments_.Move(now_, NodeId(3), GroupId(2), "too slow"); }),
              HasSubstr("worker-0 leaves group 1 for group 2, now of generation 2: too slow"));
  EXPECT_EQ(view().epoch(), epoch + 1);
  EXPECT_THAT(group(1).members(), ElementsAre(4));
  EXPECT_EQ(group(1).generation(), 2u);
  EXPECT_THAT(group(2).members(), ElementsAre(3, 5, 6));
  EXPECT_EQ(node(NodeId(3)).home_group(), 1u);
  adjustments_.Move(now_, NodeId(3), GroupId(1), "well again");
  EXPECT_EQ(node(NodeId(3)).home_group(), 0u);
  EXPECT_EQ(group(1).generation(), 3u);
  EXPECT_THAT(group(1).members(), ElementsAre(3, 4));
}

TEST_F(GroupsTest, AnEvictedWorkerIsAliveInNoGroupAndNotPlaced) {
  EXPECT_THAT(After([&] { adjustments_.Evict(NodeId(3), "too slow"); }),
              HasSubstr("worker-0 evicted from group 1, which goes on as generation 2: too slow"));
  EXPECT_EQ(node(NodeId(3)).state(), proto::Node::ALIVE);
  EXPECT_EQ(node(NodeId(3)).standby(), "evicted from group 1: too slow");
  EXPECT_EQ(node(NodeId(3)).home_group(), 1u);
  EXPECT_EQ(Tick(absl::Hours(1)), "");
  EXPECT_THAT(After([&] { adjustments_.Move(now_, NodeId(3), GroupId(1), "may try again"); }),
              HasSubstr("worker-0 leaves standby for group 1, now of generation 3"));
  EXPECT_EQ(node(NodeId(3)).standby(), "");
  EXPECT_EQ(node(NodeId(3)).home_group(), 0u);
}

TEST_F(GroupsTest, AWorkerWhoseHomeHasEndedIsPlacedLikeALateOne) {
  adjustments_.Evict(NodeId(3), "too slow");
  membership_.Leave(now_, NodeId(4), "");
  EXPECT_EQ(group(1).state(), proto::Group::DONE);
  adjustments_.Move(now_, NodeId(3), GroupId(), "may try again");
  EXPECT_EQ(node(NodeId(3)).home_group(), 0u);
  EXPECT_THAT(Tick(absl::Seconds(10)), HasSubstr("group 2 takes in worker-0"));
}

TEST_F(GroupsTest, AFullGroupTakesInNobody) {
  const int full = static_cast<int>(kGroupMembersMax);
  for (int id = 7; id < 7 + full - 2; ++id) {
    proto::Node& worker = *state_.mutable_view()->add_nodes();
    worker = node(NodeId(6));
    worker.set_id(id);
    worker.set_rank(id - 3);
    state_.mutable_view()->mutable_groups(1)->add_members(id);
  }
  ASSERT_EQ(group(2).members_size(), full);
  EXPECT_THAT(After([&] { adjustments_.Move(now_, NodeId(3), GroupId(2), "too slow"); }),
              HasSubstr("worker-0 leaves group 1: too slow"));
  EXPECT_EQ(group(2).members_size(), full);
  EXPECT_EQ(node(NodeId(3)).home_group(), 0u) << "it is placed like a late worker";
  const auto made = ClusterView::Make(view());
  EXPECT_TRUE(made.ok()) << made.status();
}

TEST_F(GroupsTest, MembersThatHaveLeftAreNotTakenAlong) {
  membership_.Leave(now_, NodeId(6), "");
  adjustments_.Move(now_, NodeId(3), GroupId(2), "too slow");
  EXPECT_THAT(group(2).members(), ElementsAre(3, 5));
  EXPECT_EQ(Tick(absl::Seconds(5)), "");
}

TEST_F(GroupsTest, DecisionsAboutGroupsThatHaveEndedChangeNothing) {
  membership_.Leave(now_, NodeId(3), "");
  membership_.Leave(now_, NodeId(4), "");
  const uint64_t epoch = view().epoch();
  EXPECT_EQ(After([&] { adjustments_.SetShares(GroupId(1), {}, "x"); }), "");
  EXPECT_EQ(After([&] { adjustments_.SetShares(GroupId(2), {1, 2, 3}, "x"); }), "");
  EXPECT_EQ(
      After([&] { adjustments_.SetMinimumMembers(GroupId(9), 1, absl::ZeroDuration(), "x"); }), "");
  EXPECT_EQ(After([&] { adjustments_.Evict(NodeId(4), "x"); }), "");
  EXPECT_EQ(view().epoch(), epoch);
}

LateWorker Late(uint64_t node, const std::string& labels, bool has_waited = false) {
  return {.worker = {.node = NodeId(node), .rank = static_cast<uint32_t>(node), .labels = labels},
          .has_waited = has_waited};
}

TEST(WorkerPlacementTest, FillFirstThenNewGroupsThenGrow) {
  const std::vector<OpenGroup> groups = {{.id = GroupId(1), .labels = {"z/a", "z/a"}},
                                         {.id = GroupId(2), .labels = {"z/b"}}};
  const Placement placement = PlaceLateWorkers(
      {.group_members = 2}, groups,
      {Late(10, "z/a", true), Late(11, "z/a"), Late(12, "z/b"), Late(13, "z/b", true)});
  // 10 fills the only free place, 11 and 12 make a group, 13 has waited.
  EXPECT_THAT(placement.additions,
              ElementsAre(Pair(GroupId(2), ElementsAre(NodeId(10), NodeId(13)))));
  EXPECT_THAT(placement.new_groups, ElementsAre(ElementsAre(NodeId(11), NodeId(12))));
}

TEST(WorkerPlacementTest, WithoutLeaveToMakeGroupsTheyWait) {
  const Placement placement =
      PlaceLateWorkers({.group_members = 1, .may_make_groups = false},
                       {{.id = GroupId(1), .labels = {"z/a"}}}, {Late(10, "z/a")});
  EXPECT_THAT(placement.additions, IsEmpty());
  EXPECT_THAT(placement.new_groups, IsEmpty());
}

}  // namespace
}  // namespace covey::scheduler
