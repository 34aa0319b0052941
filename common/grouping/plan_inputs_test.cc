// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/plan_inputs.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::HasSubstr;

PlanInputs Inputs() {
  PlanInputs inputs;
  for (uint32_t rank = 0; rank < 6; ++rank) {
    inputs.workers.push_back({.node = NodeId(rank + 10),
                              .rank = rank,
                              .labels = rank % 2 == 0 ? "z/a" : "z/b",
                              .speed = rank < 3 ? 100.0 : 25.0,
                              .failures_per_hour = rank * 0.5});
  }
  inputs.model.samples_per_step = 16;
  inputs.model.group_samples_per_step = 64;
  inputs.model.gradient_bytes = 3e6;
  inputs.model.pushed_bytes = 1e6;
  inputs.model.fits = {{1, 0.5}, {2, 0.9}};
  inputs.model.noise_sigma = 0.1;
  inputs.model.server_seconds_per_group = 0.001;
  inputs.model.statistical_penalty = 0.25;
  inputs.model.recovery_seconds = 7;
  inputs.model.shares_follow_speed = false;
  inputs.model.costs.at(Level::kRack).uplink_bytes_per_second = 1e8;
  inputs.sources = {"speeds: measured"};
  return inputs;
}

proto::ClusterView ViewOf(const PlanInputs& inputs) {
  proto::ClusterView view;
  for (const PlannedWorker& worker : inputs.workers) {
    proto::Node& node = *view.add_nodes();
    node.set_id(worker.node.value());
    node.set_rank(worker.rank);
    node.set_labels(worker.labels);
  }
  return view;
}

proto::PlanInputs MessageOf(const PlanInputs& inputs) {
  proto::PlanInputs message;
  SetPlanInputs(inputs, message);
  return message;
}

TEST(PlanInputsTest, WhoReadsThemPlansTheSameGroups) {
  const PlanInputs inputs = Inputs();
  const auto read = ReadPlanInputs(MessageOf(inputs), ViewOf(inputs));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(MessageOf(*read).SerializeAsString(), MessageOf(inputs).SerializeAsString());
  const GroupPlan plan = PlanGroups(inputs.workers, inputs.options());
  EXPECT_GT(plan.groups.size(), 1u);
  const GroupPlan again = PlanGroups(read->workers, read->options());
  EXPECT_EQ(again.Members(), plan.Members());
  EXPECT_EQ(again.value(), plan.value());
}

TEST(PlanInputsTest, AnEarlierSchedulerPushesWholeGradients) {
  proto::PlanInputs message = MessageOf(Inputs());
  message.clear_pushed_bytes();
  const auto read = ReadPlanInputs(message, ViewOf(Inputs()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->model.pushed_bytes, 3e6);
}

TEST(PlanInputsTest, GroupsInStepAreAsFewAsTheirMembersNeed) {
  PlanInputs inputs = Inputs();
  inputs.model.groups_in_step = true;
  inputs.model.pushed_bytes = inputs.model.gradient_bytes;
  EXPECT_EQ(PlanGroups(inputs.workers, inputs.options()).groups.size(), 1u);
  inputs.workers.clear();
  for (uint32_t rank = 0; rank < kGroupMembersMax + 1; ++rank) {
    inputs.workers.push_back({.node = NodeId(rank + 10), .rank = rank});
  }
  EXPECT_EQ(inputs.options().groups, 2u);
}

TEST(PlanInputsTest, DamagedOnesAreRefused) {
  const PlanInputs inputs = Inputs();
  const proto::PlanInputs good = MessageOf(inputs);
  const auto refusal = [&](auto damage) {
    proto::PlanInputs message = good;
    damage(message);
    return std::string(ReadPlanInputs(message, ViewOf(inputs)).status().message());
  };
  EXPECT_EQ(refusal([](proto::PlanInputs&) {}), "");
  EXPECT_THAT(refusal([](auto& message) { message.clear_workers(); }), HasSubstr("no worker"));
  EXPECT_THAT(refusal([](auto& message) { message.mutable_links()->RemoveLast(); }),
              HasSubstr("level of links"));
  EXPECT_THAT(refusal([](auto& message) { message.mutable_workers(1)->set_node(99); }),
              HasSubstr("node 99 is not in the view"));
  EXPECT_THAT(refusal([](auto& message) { message.mutable_workers(1)->set_node(10); }),
              HasSubstr("node 10 is not in the view"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal([&](auto& message) { message.set_noise_sigma(nan); }), HasSubstr("number"));
  EXPECT_THAT(refusal([&](auto& message) { message.set_samples_per_step(0); }),
              HasSubstr("number"));
  EXPECT_THAT(
      refusal([](auto& message) { message.mutable_workers(0)->set_samples_per_second(-1); }),
      HasSubstr("number"));
  EXPECT_THAT(refusal([](auto& message) { message.mutable_links(0)->set_bytes_per_second(0); }),
              HasSubstr("number"));
  EXPECT_THAT(refusal([](auto& message) { message.mutable_fits(0)->set_groups(0); }),
              HasSubstr("number"));
  EXPECT_THAT(refusal([](auto& message) { message.mutable_fits(0)->set_ratio(0); }),
              HasSubstr("number"));
  EXPECT_THAT(refusal([](auto& message) { message.set_pushed_bytes(-1); }), HasSubstr("number"));
}

}  // namespace
}  // namespace covey
