// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/worker_metrics.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PageOf(const WorkerMetrics& metrics) {
  MetricPage page;
  metrics.AddTo(page);
  return page.Text();
}

TEST(WorkerMetricsTest, DescribesSteps) {
  const std::string page =
      PageOf({.progress = {.step = 3, .samples = 96, .loss = 0.5, .staleness = 2},
              .seconds = {.computation = 4, .input = 1, .group = 0.25, .servers = 0.125},
              .steps_aside = 6,
              .recoveries = 7,
              .group_members = 2,
              .is_away = true});
  for (const char* line : {"covey_worker_steps_total 3", "covey_worker_samples_total 96",
                           "covey_worker_loss 0.5", "covey_worker_staleness_updates 2",
                           "covey_worker_step_seconds_total{part=\"computation\"} 4",
                           "covey_worker_step_seconds_total{part=\"input\"} 1",
                           "covey_worker_step_seconds_total{part=\"group\"} 0.25",
                           "covey_worker_step_seconds_total{part=\"servers\"} 0.125",
                           "covey_worker_steps_aside_total 6", "covey_worker_recoveries_total 7",
                           "covey_worker_group_members 2", "covey_worker_is_away 1"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(WorkerMetricsTest, ShowsDurations) {
  WorkerMetrics metrics;
  metrics.step_durations.Record(absl::Milliseconds(20));
  metrics.push_times.Record(absl::Seconds(2));
  const std::string page = PageOf(metrics);
  for (const char* line : {"covey_worker_step_duration_seconds_bucket{le=\"0.01\"} 0",
                           "covey_worker_step_duration_seconds_bucket{le=\"0.03\"} 1",
                           "covey_worker_push_seconds_bucket{le=\"1\"} 0",
                           "covey_worker_push_seconds_bucket{le=\"3\"} 1"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(WorkerMetricsTest, DescribesRequests) {
  const std::string page = PageOf({.operations = 1,
                                   .impostors = 8,
                                   .requests = {.repeats = 2,
                                                .refusals = 3,
                                                .damaged = 4,
                                                .lost_pushes = 5,
                                                .bytes_sent = 6,
                                                .bytes_received = 7}});
  for (const char* line :
       {"covey_worker_operations 1", "covey_worker_requests_repeated_total 2",
        "covey_worker_requests_refused_total 3", "covey_worker_requests_damaged_total 4",
        "covey_worker_pushes_lost_total 5", "covey_worker_messages_from_impostors_total 8",
        "covey_worker_request_bytes_total{direction=\"sent\"} 6",
        "covey_worker_request_bytes_total{direction=\"received\"} 7"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

// A counter is there from the start, so that its first increase is seen; a loss that nobody has
// reported is no loss of 0.
TEST(WorkerMetricsTest, BeginsWithCountersAndWithoutALoss) {
  const std::string page = PageOf({});
  EXPECT_THAT(page, HasSubstr("\ncovey_worker_pushes_lost_total 0\n"));
  EXPECT_THAT(page, HasSubstr("\ncovey_worker_step_seconds_total{part=\"group\"} 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("covey_worker_loss")));
}

TEST(WorkerMetricsTest, AWorkerWithoutASchedulerIsNotReady) {
  WorkerActor actor({.member = {.job_name = "j", .role = proto::WORKER}});
  const absl::Time now = absl::UnixEpoch();
  Outbox outbox;
  actor.Wake(now, outbox);
  const std::vector<ReadyCondition> conditions = WorkerConditions(now, actor);
  EXPECT_EQ(ReadyJson(conditions).find("{\"ready\":false,"), 0u);
  const auto group = std::find_if(conditions.begin(), conditions.end(),
                                  [](const auto& each) { return each.name == "group"; });
  ASSERT_NE(group, conditions.end());
  EXPECT_FALSE(group->holds);
  EXPECT_EQ(WorkerMetrics::Of(now, actor).group_members, 0u);
  EXPECT_FALSE(WorkerMetrics::Of(now, actor).is_away);
  actor.SetAway("evaluation", now + absl::Minutes(1));
  EXPECT_TRUE(WorkerMetrics::Of(now, actor).is_away);
  EXPECT_FALSE(WorkerMetrics::Of(now + absl::Minutes(2), actor).is_away);
  actor.SetBack(now);
  EXPECT_FALSE(WorkerMetrics::Of(now, actor).is_away);
}

}  // namespace
}  // namespace covey::worker
