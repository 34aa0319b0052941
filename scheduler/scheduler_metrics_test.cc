// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler_metrics.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PageOf(const SchedulerMetrics& metrics) {
  MetricPage page;
  metrics.AddTo(page);
  return page.Text();
}

proto::Node& AddNode(proto::StatusReply& status, proto::Role role) {
  proto::Node& node = *status.mutable_view()->add_nodes();
  node.set_id(static_cast<uint64_t>(status.view().nodes_size()) + 1);
  node.set_role(role);
  node.set_state(proto::Node::ALIVE);
  status.add_nodes()->set_node(node.id());
  return node;
}

TEST(SchedulerMetricsTest, EachSeriesIsThereFromTheStart) {
  const std::string page = PageOf({.expected_servers = 2, .expected_workers = 4});
  for (const char* line :
       {"covey_scheduler_leads 0", "covey_nodes{role=\"server\",state=\"alive\"} 0",
        "covey_nodes{role=\"client\",state=\"left\"} 0", "covey_nodes_expected{role=\"worker\"} 4",
        "covey_groups{state=\"broken\"} 0", "covey_events_total{event=\"node_died\"} 0",
        "covey_events_total{event=\"shard_lost\"} 0", "covey_snapshots{state=\"failed\"} 0",
        "covey_workers_by_pace{pace=\"straggler\"} 0", "covey_denied_total{reason=\"right\"} 0",
        "covey_log_write_seconds_bucket{le=\"+Inf\"} 0", "covey_snapshot_part_seconds_count 0"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(SchedulerMetricsTest, ShowsDurationsAndRefusals) {
  SchedulerMetrics metrics{.denied_for_certificate = 3, .denied_for_right = 4};
  metrics.log_writes.Record(absl::Milliseconds(20));
  metrics.snapshot_parts.Record(absl::Seconds(90));
  const std::string page = PageOf(metrics);
  for (const char* line :
       {"covey_denied_total{reason=\"certificate\"} 3", "covey_denied_total{reason=\"right\"} 4",
        "covey_log_write_seconds_bucket{le=\"0.01\"} 0",
        "covey_log_write_seconds_bucket{le=\"0.03\"} 1", "covey_log_write_seconds_sum 0.02",
        "covey_snapshot_part_seconds_bucket{le=\"60\"} 0",
        "covey_snapshot_part_seconds_bucket{le=\"300\"} 1"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(SchedulerMetricsTest, DescribesNodesAndGroups) {
  SchedulerMetrics metrics{.leads = true};
  AddNode(metrics.status, proto::SERVER).set_draining(true);
  AddNode(metrics.status, proto::SERVER).set_state(proto::Node::DEAD);
  proto::Group& group = *metrics.status.mutable_view()->add_groups();
  group.set_id(7);
  group.set_state(proto::Group::ACTIVE);
  for (const uint64_t step : {5, 6}) {
    group.add_members(AddNode(metrics.status, proto::WORKER).id());
    proto::NodeStatus& worker = *metrics.status.mutable_nodes()->rbegin();
    worker.set_silent_ms(100 * step);
    worker.mutable_progress()->set_group(7);
    worker.mutable_progress()->set_group_step(step);
    worker.mutable_progress()->set_loss(0.25 * static_cast<double>(step));
    worker.mutable_progress()->set_samples_per_second(10);
  }
  const std::string page = PageOf(metrics);
  for (const char* line :
       {"covey_nodes{role=\"server\",state=\"alive\"} 1",
        "covey_nodes{role=\"server\",state=\"dead\"} 1", "covey_nodes_draining{role=\"server\"} 1",
        "covey_heartbeat_silence_max_seconds{role=\"worker\"} 0.6",
        "covey_groups{state=\"active\"} 1", "covey_group_members{group=\"7\"} 2",
        "covey_group_step{group=\"7\"} 6", "covey_group_loss{group=\"7\"} 1.375",
        "covey_group_samples_per_second{group=\"7\"} 20"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST(SchedulerMetricsTest, DescribesShards) {
  SchedulerMetrics metrics{.leads = true};
  proto::Table& table = *metrics.status.mutable_view()->add_tables();
  table.mutable_spec()->set_name("weights");
  table.mutable_spec()->set_durability(proto::REPLICATED);
  table.add_shards();
  proto::Shard& shorted = *table.add_shards();
  shorted.add_chain();
  shorted.add_chain()->set_joining(true);
  proto::Shard& whole = *table.add_shards();
  whole.add_chain();
  whole.add_chain();
  const std::string page = PageOf(metrics);
  EXPECT_THAT(page, HasSubstr("\ncovey_shards{table=\"weights\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("\ncovey_shards_short{table=\"weights\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("\ncovey_shards_without_server{table=\"weights\"} 1\n"));
}

// The size of a page does not grow with that of the job.
TEST(SchedulerMetricsTest, NamesAreLimited) {
  SchedulerMetrics metrics{.leads = true};
  for (uint32_t number = 1; number <= 1000; ++number) {
    proto::Table& table = *metrics.status.mutable_view()->add_tables();
    table.mutable_spec()->set_name(absl::StrCat("table-", number));
    table.add_shards();
    proto::Group& group = *metrics.status.mutable_view()->add_groups();
    group.set_id(number);
    group.set_state(proto::Group::ACTIVE);
    group.add_members(AddNode(metrics.status, proto::WORKER).id());
  }
  const std::string page = PageOf(metrics);
  EXPECT_THAT(page, HasSubstr("\ncovey_shards{table=\"_other\"} 984\n"));
  EXPECT_THAT(page, HasSubstr("\ncovey_group_members{group=\"_other\"} 872\n"));
  EXPECT_THAT(page, Not(HasSubstr("covey_group_loss{group=\"_other\"}")));
  EXPECT_LT(std::count(page.begin(), page.end(), '\n'), 1'500);
}

}  // namespace
}  // namespace covey::scheduler
