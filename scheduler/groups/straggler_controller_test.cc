// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/straggler_controller.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/cluster/view.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Groups of three workers, nodes 2, 3, 4 and 5, 6, 7, that report once a second.
class StragglerControllerTest : public ::testing::Test {
 protected:
  StragglerControllerTest() { Start(StragglerRung::kPartial); }
  ~StragglerControllerTest() override {
    const auto made = ClusterView::Make(state_.view());
    EXPECT_TRUE(made.ok()) << made.status();
  }

  void Start(StragglerRung highest) {
    state_.mutable_view()->Clear();
    for (uint32_t id = 2; id <= 7; ++id) {
      proto::Node& node = *state_.mutable_view()->add_nodes();
      node.set_id(id);
      node.set_role(proto::WORKER);
      node.set_state(proto::Node::ALIVE);
      node.set_rank(id - 2);
      node.set_name(absl::StrCat("worker-", id - 2));
      seconds_[id] = id < 5 ? 0.1 : 1;
    }
    for (uint32_t id = 1; id <= 2; ++id) {
      proto::Group& group = *state_.mutable_view()->add_groups();
      group.set_id(id);
      group.set_generation(1);
      group.set_state(proto::Group::ACTIVE);
      for (uint32_t i = 0; i < 3; ++i) group.add_members(2 + (id - 1) * 3 + i);
    }
    groups_ = std::make_unique<Groups>(GroupsOptions(), state_, away_);
    adjustments_ = std::make_unique<GroupAdjustments>(state_, *groups_);
    stragglers_ = std::make_unique<StragglerController>(
        StragglerOptions{.highest = highest, .probation = absl::Seconds(30)}, state_, away_,
        *adjustments_);
  }

  // Sends `reports` reports of each worker, each in two heartbeats.
  std::vector<std::string> Run(int reports) {
    std::vector<std::string> decisions;
    const auto take_news = [&] {
      for (std::string& decision : state_.TakeTexts()) {
        ++epoch_;
        decisions.push_back(std::move(decision));
      }
      EXPECT_EQ(state_.view().epoch(), epoch_) << "one for each decision";
    };
    for (int i = 0; i < reports; ++i) {
      now_ += absl::Seconds(1);
      for (uint64_t id = 2; id <= 7; ++id) {
        proto::Progress& progress = progress_[id];
        progress.set_step(progress.step() + 10);
        progress.set_compute_seconds(seconds_[id]);
        progress.set_samples_per_step(100);
        // No two measurements are equal.
        progress.set_wait_seconds(progress.wait_seconds() + 1e-9);
        stragglers_->OnHeartbeat(now_, NodeId(id), progress);
        take_news();
        stragglers_->OnHeartbeat(now_, NodeId(id), progress);
        EXPECT_THAT(state_.TakeTexts(), IsEmpty()) << "heard before";
      }
      stragglers_->Tick(now_);
      take_news();
    }
    return decisions;
  }
  const proto::Group& group(int id) const { return state_.view().groups(id - 1); }

  TestState state_;
  AwayWorkers away_{state_};
  std::unique_ptr<Groups> groups_;
  std::unique_ptr<GroupAdjustments> adjustments_;
  std::unique_ptr<StragglerController> stragglers_;
  absl::Time now_ = absl::UnixEpoch();
  uint64_t epoch_ = 0;
  std::map<uint64_t, double> seconds_;  // per step
  std::map<uint64_t, proto::Progress> progress_;
};

TEST_F(StragglerControllerTest, SharesFollowSpeedInTheView) {
  EXPECT_THAT(Run(40), IsEmpty());
  seconds_[3] = 0.2;
  const std::vector<std::string> decisions = Run(60);
  ASSERT_FALSE(decisions.empty());
  EXPECT_THAT(decisions[0], HasSubstr("group 1 divides its samples "));
  EXPECT_THAT(decisions[0], HasSubstr("worker-1 takes"));
  ASSERT_EQ(group(1).shares_size(), 3);
  EXPECT_NEAR(group(1).shares(1), group(1).shares(0) / 2.0, 60);
  EXPECT_THAT(group(2).shares(), IsEmpty());
  EXPECT_EQ(group(1).generation(), 1u) << "the same members";

  seconds_[3] = 0.1;
  EXPECT_THAT(Run(100), ::testing::Contains(HasSubstr("group 1 divides its samples evenly again")));
  EXPECT_THAT(group(1).shares(), IsEmpty());
}

// These workers ignore shares, so that the lower rungs change nothing.
TEST_F(StragglerControllerTest, AMemberThatStaysSlowIsNotWaitedForAtLast) {
  Run(40);
  seconds_[4] = 3;
  Run(100);
  EXPECT_EQ(group(1).minimum_members(), 2u);
  EXPECT_EQ(group(1).grace_ms(), 50u);
  seconds_[4] = 0.1;
  Run(200);
  EXPECT_EQ(group(1).minimum_members(), 0u);
  EXPECT_EQ(group(1).grace_ms(), 0u);
}

TEST_F(StragglerControllerTest, AMemberMovesToTheSlowerGroupAndBack) {
  Start(StragglerRung::kRegroup);
  Run(40);
  seconds_[4] = 1;
  Run(100);
  EXPECT_THAT(group(1).members(), ElementsAre(2, 3));
  EXPECT_THAT(group(2).members(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(group(1).generation(), 2u);
  EXPECT_EQ(group(2).generation(), 2u);
  seconds_[4] = 0.1;
  Run(100);
  EXPECT_THAT(group(1).members(), ElementsAre(2, 3, 4));
  EXPECT_THAT(group(2).members(), ElementsAre(5, 6, 7));
}

TEST_F(StragglerControllerTest, AnEvictedMemberMayTryAgainAfterItsProbation) {
  Start(StragglerRung::kEvict);
  Run(40);
  seconds_[4] = 9;
  std::vector<std::string> decisions;
  while (group(1).members_size() == 3 && decisions.size() < 20) {
    for (std::string& decision : Run(1)) decisions.push_back(std::move(decision));
  }
  ASSERT_FALSE(decisions.empty());
  EXPECT_THAT(decisions.back(), HasSubstr("worker-2 evicted from group 1"));
  EXPECT_THAT(decisions.back(), HasSubstr("no other group is as slow"));
  EXPECT_THAT(state_.view().nodes(2).standby(), HasSubstr("evicted from group 1"));
  seconds_[4] = 0.1;
  EXPECT_THAT(Run(28), IsEmpty());
  ASSERT_THAT(Run(5), ElementsAre(HasSubstr("may try again")));
  EXPECT_THAT(group(1).members(), ElementsAre(2, 3, 4));
  EXPECT_EQ(state_.view().nodes(2).home_group(), 0u);
}

TEST_F(StragglerControllerTest, AnEvictedMemberWhoseProgramTakesNoStepsStaysOut) {
  Start(StragglerRung::kEvict);
  Run(40);
  seconds_[4] = 9;
  for (int i = 0; i < 100 && group(1).members_size() == 3; ++i) Run(1);
  ASSERT_EQ(group(1).members_size(), 2);
  proto::HeartbeatRequest beat;
  beat.mutable_away()->set_reason("left out of its group");
  beat.mutable_away()->set_left_ms(60 * 60 * 1000);
  away_.OnHeartbeat(now_, NodeId(4), beat);
  seconds_[4] = 0.1;
  EXPECT_THAT(Run(200), IsEmpty());
  EXPECT_EQ(group(1).members_size(), 2);
}

TEST_F(StragglerControllerTest, StatusShowsThePaces) {
  Run(40);
  seconds_[3] = 0.2;
  Run(60);
  proto::StatusReply reply;
  for (uint64_t id = 2; id <= 8; ++id) reply.add_nodes()->set_node(id);
  stragglers_->FillStatus(reply);
  EXPECT_EQ(reply.nodes(0).pace().state(), proto::Pace::STEADY);
  EXPECT_NEAR(reply.nodes(0).pace().seconds_per_sample(), 0.001, 1e-9);
  EXPECT_EQ(reply.nodes(1).pace().state(), proto::Pace::STRAGGLER);
  EXPECT_NEAR(reply.nodes(1).pace().slowness(), 2, 0.05);
  EXPECT_FALSE(reply.nodes(6).has_pace());
  stragglers_->OnDeparture(NodeId(3));
  reply.mutable_nodes(1)->clear_pace();
  stragglers_->FillStatus(reply);
  EXPECT_FALSE(reply.nodes(1).has_pace());
}

TEST_F(StragglerControllerTest, DecidesNothingAboutAGroupWhileAMemberIsAway) {
  Run(40);
  seconds_[3] = 0.2;
  proto::HeartbeatRequest beat;
  beat.mutable_away()->set_reason("evaluation");
  beat.mutable_away()->set_left_ms(120'000);
  away_.OnHeartbeat(now_, NodeId(4), beat);
  EXPECT_THAT(Run(100), IsEmpty()) << "another member is away";
  // Its time is over in the middle of the following reports.
  EXPECT_THAT(Run(100), ::testing::Contains(HasSubstr("group 1 divides its samples ")));
}

TEST_F(StragglerControllerTest, OtherGroupsAreJudgedMeanwhile) {
  Run(40);
  seconds_[3] = 0.2;
  proto::HeartbeatRequest beat;
  beat.mutable_away()->set_reason("evaluation");
  beat.mutable_away()->set_left_ms(3'600'000);
  away_.OnHeartbeat(now_, NodeId(6), beat);
  EXPECT_THAT(Run(100), ::testing::Contains(HasSubstr("group 1 divides its samples ")));
}

}  // namespace
}  // namespace covey::scheduler
