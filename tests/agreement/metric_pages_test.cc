// SPDX-License-Identifier: Apache-2.0
// The metrics of all roles of one job: together they are few, and a name means one thing.
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/cluster/view.h"
#include "common/metrics/member_metrics.h"
#include "common/metrics/metric_page.h"
#include "common/metrics/process_metrics.h"
#include "common/runtime/member.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/scheduler_metrics.h"
#include "server/apply_timer.h"
#include "server/server_metrics.h"
#include "worker/engine/worker_metrics.h"

namespace covey {
namespace {

// A job of 100 nodes, and as many tables as the pages name.
constexpr uint32_t kServers = 20;
constexpr uint32_t kGroups = 20;
constexpr uint32_t kMembers = 4;
constexpr uint32_t kTables = 16;

proto::Node& AddNode(proto::StatusReply& status, proto::Role role, uint32_t rank) {
  proto::Node& node = *status.mutable_view()->add_nodes();
  node.set_id(static_cast<uint64_t>(status.view().nodes_size()));
  node.set_role(role);
  node.set_rank(rank);
  node.set_state(proto::Node::ALIVE);
  proto::NodeStatus& known = *status.add_nodes();
  known.set_node(node.id());
  known.set_silent_ms(100);
  return node;
}

proto::StatusReply StatusOfTheJob() {
  proto::StatusReply status;
  for (uint32_t rank = 0; rank < kServers; ++rank) AddNode(status, proto::SERVER, rank);
  for (uint32_t number = 0; number < kGroups; ++number) {
    proto::Group& group = *status.mutable_view()->add_groups();
    group.set_id(number + 1);
    group.set_state(proto::Group::ACTIVE);
    for (uint32_t member = 0; member < kMembers; ++member) {
      group.add_members(AddNode(status, proto::WORKER, number * kMembers + member).id());
      proto::Progress& progress = *status.mutable_nodes()->rbegin()->mutable_progress();
      progress.set_group(group.id());
      progress.set_group_step(7);
      progress.set_step(7);
      progress.set_loss(0.5);
      progress.set_samples_per_second(100);
    }
  }
  for (uint32_t number = 0; number < kTables; ++number) {
    proto::Table& table = *status.mutable_view()->add_tables();
    table.set_id(number + 1);
    table.mutable_spec()->set_name(absl::StrCat("layer", number, ".weight"));
    table.mutable_spec()->add_shape(kServers);
    for (uint32_t shard = 0; shard < kServers; ++shard) {
      proto::Shard& each = *table.add_shards();
      each.set_index(shard);
      each.set_first_element(shard);
      each.set_element_count(1);
      each.add_chain()->set_node(shard + 1);
      each.add_chain()->set_node((shard + 1) % kServers + 1);
    }
  }
  return status;
}

// The pages as the processes' own functions fill them.
class Pages {
 public:
  std::string OfScheduler() const {
    MetricPage page;
    AddProcessMetrics("scheduler", page);
    AddBusyTime(absl::Seconds(1), page);
    page.Gauge("covey_insecure", "1 if everybody who reaches the process may take part in the job.",
               0);
    scheduler::SchedulerMetrics{.leads = true,
                                .expected_servers = kServers,
                                .expected_workers = kGroups * kMembers,
                                .status = status_}
        .AddTo(page);
    return page.Text();
  }

  std::string OfServer() {
    MetricPage page;
    AddProcessMetrics("server", page);
    AddMemberMetrics(member_, /*is_insecure=*/false, page);
    page.Gauge("covey_loops", "Threads that serve shards.", 1);
    server::AddLoopSilence(std::nullopt, page);
    AddMessageMetrics({}, page);
    AddBusyTime(absl::Seconds(1), page);
    server::AddLoopMetrics({}, DurationHistogram(server::ApplyTimer::kBounds), page);
    server::AddReplicationLag(0, page);
    proto::ServerLoad load;
    for (const proto::Table& table : status_.view().tables()) {
      load.add_tables()->set_table(table.id());
    }
    server::AddLoadMetrics(load, **ClusterView::Make(status_.view()), 1 << 20, page);
    return page.Text();
  }

  std::string OfWorker() {
    MetricPage page;
    AddProcessMetrics("worker", page);
    AddMessageMetrics({}, page);
    AddBusyTime(absl::Seconds(1), page);
    AddMemberMetrics(member_, /*is_insecure=*/false, page);
    worker::WorkerMetrics{.progress = {.step = 7, .samples = 448, .loss = 0.5}}.AddTo(page);
    return page.Text();
  }

 private:
  const proto::StatusReply status_ = StatusOfTheJob();
  uint64_t next_request_id_ = 1;
  const Member member_{{.job_name = "j", .role = proto::WORKER}, next_request_id_};
};

size_t SeriesOf(const std::string& page) {
  const std::vector<std::string> lines = absl::StrSplit(page, '\n', absl::SkipEmpty());
  return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return !absl::StartsWith(line, "#");
  }));
}

// What Prometheus stores for a job of 100 nodes. docs/METRICS.md has these numbers.
TEST(MetricPagesTest, AreSmallAt100Nodes) {
  Pages pages;
  const size_t scheduler = SeriesOf(pages.OfScheduler());
  const size_t server = SeriesOf(pages.OfServer());
  const size_t worker = SeriesOf(pages.OfWorker());
  EXPECT_EQ(scheduler, 299u);
  EXPECT_EQ(server, 85u);
  EXPECT_EQ(worker, 64u);
  EXPECT_LE(scheduler + kServers * server, 2000u);
}

absl::Duration ThreadTime() {
  rusage used = {};
  getrusage(RUSAGE_THREAD, &used);
  return absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
}

// Processor time, which a busy machine does not change much; a scrape may take 50 ms in all.
TEST(MetricPagesTest, AreMadeInAMomentAt100Nodes) {
  Pages pages;
  const absl::Duration start = ThreadTime();
  pages.OfScheduler();
  const absl::Duration middle = ThreadTime();
  pages.OfServer();
  pages.OfWorker();
  const absl::Duration scheduler = middle - start;
  const absl::Duration others = ThreadTime() - middle;
  RecordProperty("scheduler", absl::FormatDuration(scheduler));
  RecordProperty("others", absl::FormatDuration(others));
  EXPECT_LT(scheduler, absl::Milliseconds(25));
  EXPECT_LT(others, absl::Milliseconds(25));
}

// A name has the same help and type on all pages, which is all that Prometheus keeps of them.
TEST(MetricPagesTest, ANameMeansOneThing) {
  Pages pages;
  std::map<std::string, std::string> known;
  for (const std::string& page : {pages.OfScheduler(), pages.OfServer(), pages.OfWorker()}) {
    for (const absl::string_view line : absl::StrSplit(page, '\n')) {
      if (!absl::StartsWith(line, "#")) continue;
      const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
      const auto [place, is_new] =
          known.emplace(absl::StrCat(words[1], " ", words[2]), words.at(3));
      EXPECT_EQ(place->second, words[3]) << place->first;
    }
  }
}

}  // namespace
}  // namespace covey
