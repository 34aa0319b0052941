// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/run_history.h"

#include <gtest/gtest.h>

#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

TEST(RunHistoryTest, OnePointPerProgress) {
  RunHistory history;
  proto::StatusReply status = StatusForTests();
  history.Add(absl::Seconds(1), status);
  history.Add(absl::Seconds(2), status);  // Nothing new.
  status.mutable_nodes(1)->mutable_progress()->set_step(40);
  history.Add(absl::Seconds(3), status);

  ASSERT_EQ(history.groups().size(), 1u) << "group 1 has finished no step";
  const GroupHistory& group = history.groups()[0];
  ASSERT_EQ(group.points.size(), 2u);
  EXPECT_EQ(group.points[0].seconds, 1);
  EXPECT_EQ(group.points[0].samples, 3904u);
  EXPECT_DOUBLE_EQ(group.points[0].samples_per_second, 2500);
  EXPECT_DOUBLE_EQ(group.points[0].loss, 0.4);
  EXPECT_EQ(group.points[0].steps_aside, 4u);
  EXPECT_DOUBLE_EQ(group.points[0].compute_seconds, 0.06);
  EXPECT_DOUBLE_EQ(group.points[0].wait_seconds, 0.02);
  EXPECT_EQ(group.points[1].seconds, 3);
  EXPECT_EQ(group.points[1].step, 40u);
}

TEST(RunHistoryTest, TheMeanStepWeighsPointsByTheirSteps) {
  RunHistory history;
  EXPECT_EQ(history.MeanStepTimes().total(), 0);
  proto::StatusReply status = StatusForTests();
  history.Add(absl::Seconds(1), status);  // Step 31: the servers take 10 ms.
  status.mutable_nodes(1)->mutable_progress()->set_step(31 + 93);
  status.mutable_nodes(1)->mutable_progress()->set_servers_seconds(0.08);
  history.Add(absl::Seconds(2), status);  // 93 steps: 50 ms.
  const client::StepTimes mean = history.MeanStepTimes();
  EXPECT_DOUBLE_EQ(mean.servers, 0.04);
  EXPECT_DOUBLE_EQ(mean.computation, 0.04);
  EXPECT_DOUBLE_EQ(mean.input, 0.01);
  EXPECT_DOUBLE_EQ(mean.group, 0.01);
}

TEST(RunHistoryTest, EventsAreOnTheClockOfTheRun) {
  RunHistory history;
  history.Add(absl::Seconds(13), StatusForTests());  // The scheduler is up for 12.3 s.
  ASSERT_EQ(history.events().size(), 2u);
  EXPECT_NEAR(history.events()[1].seconds, 4.9, 1e-9);
  EXPECT_EQ(history.events()[1].text, "worker-2 dead: silent for 2.6 s");
}

TEST(RunHistoryTest, KeepsLongRunsSmall) {
  RunHistory history;
  proto::StatusReply status = StatusForTests();
  for (uint64_t step = 100; step < 100 + 3 * RunHistory::kPointsMax; ++step) {
    status.mutable_nodes(1)->mutable_progress()->set_step(step);
    history.Add(absl::Seconds(step), status);
  }
  const std::vector<HistoryPoint>& points = history.groups()[0].points;
  EXPECT_LE(points.size(), RunHistory::kPointsMax);
  EXPECT_GE(points.size(), RunHistory::kPointsMax / 2);
  EXPECT_EQ(points.front().step, 100u);
  EXPECT_EQ(points.back().step, 99 + 3 * RunHistory::kPointsMax);
  EXPECT_LE(history.events().size(), RunHistory::kEventsMax);
}

}  // namespace
}  // namespace covey::cli
