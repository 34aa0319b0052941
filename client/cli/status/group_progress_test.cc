// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/group_progress.h"

#include <gtest/gtest.h>

#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

TEST(GroupProgressTest, PutsTheMembersTogether) {
  const std::vector<GroupProgress> groups = ProgressOfGroups(StatusForTests());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].group, 0u);
  EXPECT_EQ(groups[0].members, 2u);
  EXPECT_EQ(ShowState(groups[0].state), "active");
  EXPECT_TRUE(groups[0].started);
  EXPECT_EQ(groups[0].step, 31u);
  EXPECT_EQ(groups[0].samples, 1920u + 1984u);
  EXPECT_DOUBLE_EQ(groups[0].samples_per_second, 2500);
  EXPECT_DOUBLE_EQ(groups[0].loss, 0.4);
  EXPECT_DOUBLE_EQ(groups[0].staleness, 1.5);
  EXPECT_EQ(groups[0].generation, 1u);
  EXPECT_EQ(groups[0].stragglers, 1u);
  EXPECT_EQ(groups[0].steps_aside, 4u);
  EXPECT_DOUBLE_EQ(groups[0].compute_seconds, 0.06);
  EXPECT_DOUBLE_EQ(groups[0].wait_seconds, 0.02);
}

TEST(GroupProgressTest, TheTimesOfAStepAreTheMeanOfTheMembersThatTellThem) {
  proto::StatusReply status = StatusForTests();
  const client::StepTimes both = ProgressOfGroups(status)[0].step_times;
  EXPECT_DOUBLE_EQ(both.computation, 0.04) << "60 ms, of which 20 ms are input; and 40 ms";
  EXPECT_DOUBLE_EQ(both.input, 0.01);
  EXPECT_DOUBLE_EQ(both.group, 0.01);
  EXPECT_DOUBLE_EQ(both.servers, 0.01);
  proto::Progress& other = *status.mutable_nodes(2)->mutable_progress();
  other.clear_compute_seconds();
  other.clear_group_seconds();
  other.clear_servers_seconds();
  EXPECT_DOUBLE_EQ(ProgressOfGroups(status)[0].step_times.input, 0.02);
}

TEST(GroupProgressTest, AGroupThatHasSaidNothingHasNotStarted) {
  const GroupProgress broken = ProgressOfGroups(StatusForTests())[1];
  EXPECT_FALSE(broken.started);
  EXPECT_EQ(ShowState(broken.state), "broken");
  EXPECT_EQ(broken.reason, "worker-2 dead: silent for 2.6 s");
  EXPECT_EQ(broken.loss, 0);
}

TEST(GroupProgressTest, AMemberWithoutExamplesHasNoLoss) {
  proto::StatusReply status = StatusForTests();
  const double others = status.nodes(1).progress().loss();
  status.mutable_nodes(2)->mutable_progress()->set_samples(0);
  status.mutable_nodes(2)->mutable_progress()->set_loss(0);
  const GroupProgress group = ProgressOfGroups(status)[0];
  EXPECT_DOUBLE_EQ(group.loss, others);
  EXPECT_DOUBLE_EQ(group.staleness, 1.5) << "it has finished steps all the same";
}

TEST(GroupProgressTest, NoGroupsNoProgress) {
  EXPECT_TRUE(ProgressOfGroups(proto::StatusReply()).empty());
}

}  // namespace
}  // namespace covey::cli
