// SPDX-License-Identifier: Apache-2.0
#include "server/server_metrics.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/apply_timer.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;

TEST(ServerMetricsTest, AddsUpLoops) {
  ShardCounters one{.pushes = 3, .non_finite = 1};
  ShardCounters other{.pushes = 4, .refused = 2};
  one.replication.Record(absl::Milliseconds(4));
  other.replication.Record(absl::Seconds(2));
  DurationHistogram applies(ApplyTimer::kBounds);
  applies.Record(absl::Microseconds(250));
  MetricPage page;
  AddLoopMetrics(one, applies, page);
  AddLoopMetrics(other, applies, page);
  for (const char* line :
       {"covey_pushes_total 7", "covey_pushes_nonfinite_total 1", "covey_requests_refused_total 2",
        "covey_pulls_total 0", "covey_replication_seconds_bucket{le=\"0.005\"} 1",
        "covey_replication_seconds_bucket{le=\"1\"} 1", "covey_replication_seconds_count 2",
        "covey_apply_seconds_bucket{le=\"0.0001\"} 0", "covey_apply_seconds_bucket{le=\"0.001\"} 2",
        "covey_apply_seconds_sum 0.0005"}) {
    EXPECT_THAT(page.Text(), HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(ServerMetricsTest, ShowsTheSilenceOfTheQuietestLoop) {
  MetricPage none, some;
  AddLoopSilence(std::nullopt, none);
  EXPECT_THAT(none.Text(), HasSubstr("\ncovey_loop_silence_seconds 0\n"));
  AddLoopSilence(DataLoopWatch::SilentLoop{.loop = 2, .silence = absl::Milliseconds(1500)}, some);
  EXPECT_THAT(some.Text(), HasSubstr("\ncovey_loop_silence_seconds 1.5\n"));
}

TEST(ServerMetricsTest, ShowsTheLagOfChains) {
  MetricPage page;
  AddReplicationLag(17, page);
  EXPECT_THAT(page.Text(), HasSubstr("\ncovey_replication_lag_records 17\n"));
}

TEST(ServerMetricsTest, DescribesTheLoad) {
  proto::ServerLoad load;
  load.set_table_bytes(100);
  load.set_replica_bytes(40);
  load.set_queued_bytes(8);
  proto::TableAsynchrony& gone = *load.add_tables();
  gone.set_table(5);
  gone.set_updates(6);
  MetricPage page;
  AddLoadMetrics(load, *ClusterView::Empty(), 64, page);
  for (const char* line :
       {"covey_table_bytes{kind=\"head\"} 60", "covey_table_bytes{kind=\"replica\"} 40",
        "covey_queued_bytes 8", "covey_queued_max_bytes 64",
        "covey_updates_total{table=\"_other\"} 6"}) {
    EXPECT_THAT(page.Text(), HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

}  // namespace
}  // namespace covey::server
