// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/plan/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/grouping/group_planner.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunOptions SomeOptions() {
  return {.servers = 2, .groups = 12, .workers_per_group = 11, .job = "j", .program = {"p", "-x"}};
}

TEST(LaunchPlanTest, TheSchedulerKnowsWhomToExpect) {
  RunOptions options = SomeOptions();
  options.stragglers = StragglerRung::kEvict;
  const Program program = SchedulerProgram(
      options, {.scheduler_binary = "s", .port_file = "port", .scheduler_log = "log"});
  EXPECT_EQ(
      absl::StrJoin(program.arguments, " "),
      "s --job j --host 127.0.0.1 --port 0 --port-file port --servers 2 --groups 12 --workers 11 "
      "--log-file log --stragglers evict");
}

TEST(LaunchPlanTest, AServerGetsLoopsOnlyWhenTheyAreChosen) {
  RunOptions options = SomeOptions();
  const LocalPaths paths = {.server_binary = "s"};
  EXPECT_THAT(absl::StrJoin(ServerProgram(options, paths, "h:1", 1).arguments, " "),
              ::testing::StartsWith("s --scheduler h:1 --job j --rank 1 --transport auto"));
  EXPECT_THAT(ServerProgram(options, paths, "h:1", 1).arguments,
              ::testing::Not(::testing::Contains("--loops")));
  options.server_loops = 3;
  EXPECT_THAT(absl::StrJoin(ServerProgram(options, paths, "h:1", 1).arguments, " "),
              HasSubstr("--loops 3"));
}

TEST(LaunchPlanTest, SnapshotsGoToOneStore) {
  RunOptions options = SomeOptions();
  options.store = "dir";
  options.resume = "latest";
  options.snapshot_every = "10min";
  options.feedback_flush_steps = "20";
  options.durability = "flushed:2s";
  options.on_loss = "stop";
  options.snapshots_kept = "5";
  options.initial_values = "import-gpt2,w";
  EXPECT_THAT(absl::StrJoin(SchedulerProgram(options, {}).arguments, " "),
              ::testing::EndsWith(
                  "--store dir --resume latest --snapshot-every 10min --feedback-flush-steps 20 "
                  "--durability flushed:2s --on-loss stop --snapshots-kept 5 "
                  "--initial-values import-gpt2,w"));
  EXPECT_THAT(absl::StrJoin(ServerProgram(options, {}, "h:1", 1).arguments, " "),
              ::testing::EndsWith("--store dir"));
}

TEST(LaunchPlanTest, ServersRecordOnlyWhenAsked) {
  RunOptions options = SomeOptions();
  const LocalPaths paths = {.server_binary = "s"};
  EXPECT_THAT(ServerProgram(options, paths, "h:1", 1).arguments,
              ::testing::Not(::testing::Contains("--record")));
  options.record_folder = "r";
  EXPECT_THAT(absl::StrJoin(ServerProgram(options, paths, "h:1", 1).arguments, " "),
              ::testing::EndsWith("--record r"));
  options.record_gradients = false;
  EXPECT_THAT(absl::StrJoin(ServerProgram(options, paths, "h:1", 1).arguments, " "),
              ::testing::EndsWith("--record r --record-gradients=false"));
}

TEST(LaunchPlanTest, AServerWaitsAwakeOnlyWhereEveryProcessHasACore) {
  RunOptions options{.server_loops = 1};
  const LocalPaths paths = {.server_binary = "s"};
  const auto spins = [&] {
    const std::vector<std::string> arguments = ServerProgram(options, paths, "h:1", 0).arguments;
    return std::find(arguments.begin(), arguments.end(), "--spin") != arguments.end();
  };
  EXPECT_FALSE(spins()) << "the number of cores is not known";
  options.cores = 2;
  EXPECT_TRUE(spins());
  options.workers_per_group = 2;
  EXPECT_FALSE(spins());
}

TEST(LaunchPlanTest, AWorkerIsTheProgramWithItsPlaceInTheEnvironment) {
  const Program program = WorkerProgram(SomeOptions(), "h:1", 13);
  EXPECT_EQ(program.name, "worker-13");
  EXPECT_THAT(program.arguments, ElementsAre("p", "-x"));
  EXPECT_EQ(program.environment.at("COVEY_SCHEDULER"), "h:1");
  EXPECT_EQ(program.environment.at("COVEY_RANK"), "13");
  EXPECT_EQ(program.environment.at("COVEY_LABELS"), "local/group-0001/host-0002");
}

// Launcher and scheduler must agree which worker is in which group.
TEST(LaunchPlanTest, TheSchedulersGroupsAreContiguousRanks) {
  const RunOptions options = SomeOptions();
  std::vector<PlannedWorker> workers;
  for (uint32_t rank = 0; rank < options.workers(); ++rank) {
    workers.push_back(
        {.node = NodeId(rank),
         .rank = rank,
         .labels = WorkerProgram(options, "h:1", rank).environment.at("COVEY_LABELS")});
  }
  uint32_t rank = 0;
  for (const std::vector<NodeId>& group : PlanGroups(workers, options.groups)) {
    ASSERT_EQ(group.size(), options.workers_per_group);
    for (const NodeId node : group) EXPECT_EQ(node.value(), rank++);
  }
  EXPECT_EQ(rank, options.workers());
}

TEST(RunOptionsTest, NamesTheFlagAndWhatIsAllowed) {
  const auto message = [](auto change) {
    RunOptions options = SomeOptions();
    change(options);
    return std::string(options.Validate().message());
  };
  EXPECT_EQ(message([](RunOptions&) {}), "");
  EXPECT_THAT(message([](RunOptions& o) { o.servers = 0; }), HasSubstr("--servers is 0; choose 1"));
  EXPECT_THAT(message([](RunOptions& o) { o.groups = 0; }), HasSubstr("--groups is 0"));
  EXPECT_THAT(message([](RunOptions& o) { o.workers_per_group = 5000; }), HasSubstr("--workers"));
  EXPECT_THAT(message([](RunOptions& o) { o.groups = o.workers_per_group = 100; }),
              HasSubstr("10000 processes"));
  EXPECT_THAT(message([](RunOptions& o) { o.transport = "udp"; }), HasSubstr("tcp or ipc"));
  EXPECT_THAT(message([](RunOptions& o) { o.job = ""; }), HasSubstr("--job"));
  EXPECT_THAT(message([](RunOptions& o) { o.timeout = absl::ZeroDuration(); }),
              HasSubstr("--timeout"));
  EXPECT_THAT(message([](RunOptions& o) { o.grace = absl::ZeroDuration(); }), HasSubstr("--grace"));
  EXPECT_THAT(message([](RunOptions& o) { o.program.clear(); }), HasSubstr("-- PROGRAM"));
  EXPECT_THAT(message([](RunOptions& o) { o.resume = "latest"; }), HasSubstr("--store DIR"));
  EXPECT_THAT(message([](RunOptions& o) { o.snapshot_every = "1m"; }), HasSubstr("--store DIR"));
  EXPECT_THAT(message([](RunOptions& o) { o.durability = "disk"; }), HasSubstr("'disk'; choose"));
  EXPECT_THAT(message([](RunOptions& o) { o.durability = "flushed:2s"; }),
              HasSubstr("--store DIR"));
  EXPECT_THAT(message([](RunOptions& o) { o.servers = 1, o.durability = "replicated"; }),
              HasSubstr("two servers"));
  EXPECT_THAT(message([](RunOptions& o) { o.server_loops = 65; }), HasSubstr("--server-loops"));
}

}  // namespace
}  // namespace covey::cli
