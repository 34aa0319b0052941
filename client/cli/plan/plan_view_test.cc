// SPDX-License-Identifier: Apache-2.0
#include "client/cli/plan/plan_view.h"

#include <nlohmann/json.hpp>

#include "client/cli/testing/status_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four workers in one group; the last two are eight times slower.
proto::StatusReply SlowAndFast() {
  proto::StatusReply status;
  COVEY_CHECK(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        view {
          nodes { id: 3 role: WORKER state: ALIVE name: "worker-0" rank: 0 }
          nodes { id: 4 role: WORKER state: ALIVE name: "worker-1" rank: 1 }
          nodes { id: 5 role: WORKER state: ALIVE name: "worker-2" rank: 2 }
          nodes { id: 6 role: WORKER state: ALIVE name: "worker-3" rank: 3 }
          groups {
            id: 1
            generation: 1
            members: [ 3, 4, 5, 6 ]
            state: ACTIVE
          }
          tables {
            id: 1
            spec { name: "w" }
          }
        }
        nodes {
          node: 3
          progress { step: 9 samples_per_second: 9 }
        }
        nodes {
          node: 4
          progress { step: 9 samples_per_second: 9 }
        }
        nodes {
          node: 5
          progress { step: 9 samples_per_second: 9 }
        }
        nodes {
          node: 6
          progress { step: 9 samples_per_second: 9 }
        }
        plan {
          automatic: true
          next_ms: 12000
          workers { node: 3 samples_per_second: 80 step_seconds: 1.1 }
          workers { node: 4 samples_per_second: 80 step_seconds: 1.1 }
          workers { node: 5 samples_per_second: 10 step_seconds: 1.1 }
          workers { node: 6 samples_per_second: 10 step_seconds: 1.1 }
          samples_per_step: 10
          noise_sigma: 0
          statistical_penalty: 0.07
          recovery_seconds: 30
          measured_samples_per_second: 36
          sources: "speeds: measured"
        }
      )pb",
      &status));
  for (int level = 0; level < 5; ++level) {
    proto::PlanLink& link = *status.mutable_plan()->add_links();
    link.set_latency_seconds(1e-5);
    link.set_bytes_per_second(1e9);
  }
  return status;
}

TEST(PlanViewTest, ShowsWhatTheGroupsDoAndWhatOthersWouldBring) {
  const auto page = MakePlanPage(SlowAndFast());
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_NEAR(page->present.samples_per_second, 40, 0.1);
  EXPECT_THAT(page->best_members, ElementsAre(ElementsAre("worker-0", "worker-1"),
                                              ElementsAre("worker-2", "worker-3")));
  EXPECT_GT(page->gain(), 3);
  const std::string text = PlanText(*page);
  EXPECT_THAT(text, HasSubstr("1 group, chosen by the scheduler, which looks again in 12 s"));
  EXPECT_THAT(text, HasSubstr("36 (-10 %)"));
  EXPECT_THAT(text, HasSubstr("best"));
  EXPECT_THAT(text, HasSubstr("as many as now"));
  EXPECT_THAT(text, HasSubstr("1.1 s"));
  EXPECT_THAT(text, HasSubstr("0.04 ms"));
  EXPECT_THAT(text, HasSubstr("more progress:\n  worker-0 worker-1\n  worker-2 worker-3\n"));
  EXPECT_THAT(text, HasSubstr("speeds: measured"));
}

TEST(PlanViewTest, AJobWithOrderedGroupsGetsTheSameAdvice) {
  proto::StatusReply status = SlowAndFast();
  status.mutable_plan()->set_automatic(false);
  status.mutable_plan()->set_next_ms(0);
  const auto page = MakePlanPage(status);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(PlanText(*page), HasSubstr("1 group, as configured\n"));
  EXPECT_THAT(PlanText(*page), HasSubstr("see --groups auto"));
}

TEST(PlanViewTest, SaysWhenNothingIsBetter) {
  proto::StatusReply status = SlowAndFast();
  proto::Group& group = *status.mutable_view()->mutable_groups(0);
  group.clear_members();
  group.add_members(3);
  group.add_members(4);
  proto::Group& other = *status.mutable_view()->add_groups();
  other.set_id(2);
  other.set_state(proto::Group::ACTIVE);
  other.add_members(5);
  other.add_members(6);
  const auto page = MakePlanPage(status);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->groups.size(), 2u);
  EXPECT_GT(page->groups[0].predicted.samples_per_second, 100);
  EXPECT_LT(page->groups[1].predicted.samples_per_second, 30);
  EXPECT_THAT(PlanText(*page),
              HasSubstr("No other groups would make more progress by 5 % or more"));
}

TEST(PlanViewTest, AMemberThatTheViewLacksHasANumber) {
  proto::StatusReply status = SlowAndFast();
  status.mutable_view()->mutable_groups(0)->add_members(99);
  proto::Group& other = *status.mutable_view()->add_groups();
  other.set_id(2);
  other.set_state(proto::Group::ACTIVE);
  other.add_members(98);
  const auto page = MakePlanPage(status);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(PlanText(*page), HasSubstr("worker-3 node 99"));
  EXPECT_THAT(PlanText(*page), ::testing::Not(HasSubstr("inf")));
}

TEST(PlanViewTest, ThePredictedStepContainsTheServers) {
  proto::StatusReply status = SlowAndFast();
  status.mutable_plan()->set_server_seconds_per_group(1);
  const auto page = MakePlanPage(status);
  ASSERT_TRUE(page.ok()) << page.status();
  const PlannedGroup& group = page->groups[0].predicted;
  EXPECT_NEAR(group.step_seconds * group.samples_per_second, 40, 1e-6);
}

TEST(PlanViewTest, JsonHasTheSame) {
  const auto page = MakePlanPage(SlowAndFast());
  ASSERT_TRUE(page.ok()) << page.status();
  const auto json = nlohmann::json::parse(PlanJson(*page));
  EXPECT_EQ(json["automatic"], true);
  EXPECT_EQ(json["best"].size(), 2u);
  EXPECT_EQ(json["candidates"].size(), 4u);
  EXPECT_EQ(json["groups"][0]["samples_per_second"], 36);
}

TEST(PlanViewTest, SaysWhyThereIsNothingToPlan) {
  const auto why = [](auto change) {
    proto::StatusReply status = SlowAndFast();
    change(status);
    return std::string(MakePlanPage(status).status().message());
  };
  EXPECT_THAT(why([](proto::StatusReply& status) {
                status.mutable_view()->clear_groups();
                status.mutable_view()->set_waiting_for("worker-2");
              }),
              HasSubstr("waits for worker-2"));
  EXPECT_THAT(why([](proto::StatusReply& status) { status.mutable_view()->clear_tables(); }),
              HasSubstr("no table"));
  EXPECT_THAT(why([](proto::StatusReply& status) { status.clear_plan(); }),
              HasSubstr("before 0.2.0; upgrade it"));
  EXPECT_THAT(why([](proto::StatusReply& status) {
                status.mutable_view()->mutable_groups(0)->set_state(proto::Group::DONE);
              }),
              HasSubstr("all groups have ended"));
}

}  // namespace
}  // namespace covey::cli
