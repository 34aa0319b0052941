// SPDX-License-Identifier: Apache-2.0
#include "scheduler/config.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

TEST(ConfigTest, DefaultsAreValid) { EXPECT_TRUE(Config().Validate().ok()); }

TEST(ConfigTest, NamesWhatIsWrong) {
  const struct {
    Config config;
    std::string named;
  } cases[] = {
      {{.job_name = ""}, "job = ''"},
      {{.servers = 0}, "servers = 0"},
      {{.workers_per_group = 0}, "workers = 0"},
      {{.groups = 20'000, .workers_per_group = 2}, "groups = 20000"},
      {{.workers_per_group = 5000}, "workers = 5000"},
      {{.workers_per_group = 40'000, .plans_groups = true}, "workers = 40000"},
      {{.heartbeat = absl::ZeroDuration()}, "heartbeat = 0"},
      {{.silence_min = absl::Milliseconds(600)}, "silence-min = 600ms"},
      {{.placement_wait = absl::Hours(2)}, "placement-wait = 2h"},
      {{.regroup_after = absl::Hours(2)}, "regroup-after = 2h"},
      {{.stragglers = {.slow_ratio = 1.1}}, "straggler-ratio = 1.1"},
      {{.stragglers = {.partial_minimum = 5000}}, "partial-reduce-minimum = 5000"},
      {{.stragglers = {.partial_grace = absl::Hours(1)}}, "partial-reduce-grace = 1h"},
      {{.stragglers = {.group_members_min = 0}}, "group-members-min = 0"},
      {{.stragglers = {.probation = absl::ZeroDuration()}}, "straggler-probation = 0"},
      {{.resume = "latest"}, "need a store"},
      {{.initial_values = "import-gpt2"}, "need a store"},
      {{.port = 65536}, "port = 65536"},
      {{.snapshot_every = absl::Minutes(1)}, "--store DIR"},
      {{.snapshot_every_samples = 1000}, "--store DIR"},
      {{.resume = "latest"}, "--store DIR"},
      {{.store = "/s", .snapshot_every = absl::Milliseconds(900)}, "snapshot-every = 900ms"},
      {{.feedback_flush_steps = 1'000'001}, "feedback-flush-steps = 1000001"},
      {{.durability = JobDurability::Parse("flushed:2s").value()}, "--store DIR"},
      {{.durability = JobDurability::Parse("replicated").value()}, "at least two servers"},
      {{.snapshots_kept = 0}, "snapshots-kept = 0"},
      {{.snapshots_kept = 1001}, "snapshots-kept = 1001"},
      {{.snapshot_deadline = absl::Milliseconds(999)}, "snapshot-deadline = 999ms"},
      {{.snapshot_deadline = absl::Hours(25)}, "snapshot-deadline = 25h"},
  };
  for (const auto& [config, named] : cases) {
    const absl::Status status = config.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(status.message().find(named), absl::string_view::npos) << status;
  }
}

TEST(ConfigTest, ErrorFeedbackIsFlushedOnlyForAStore) {
  EXPECT_EQ(Config().job().feedback_flush_steps, 0u);
  EXPECT_EQ(Config({.store = "/s"}).job().feedback_flush_steps, 100u);
}

TEST(ConfigTest, SnapshotsAreMadeByTimeByExamplesOrBoth) {
  Config config;
  const struct {
    const char* text;
    absl::Duration every;
    uint64_t samples;
    const char* shown;
  } cases[] = {
      {"10min", absl::Minutes(10), 0, "10m"},
      {"1e6samples", absl::InfiniteDuration(), 1'000'000, "1000000samples"},
      {"10min,1e6samples", absl::Minutes(10), 1'000'000, "10m,1000000samples"},
      {"2500samples,30s", absl::Seconds(30), 2500, "30s,2500samples"},
  };
  for (const auto& [text, every, samples, shown] : cases) {
    const absl::Status status = config.SetSnapshotEvery(text);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(config.snapshot_every, every) << text;
    EXPECT_EQ(config.snapshot_every_samples, samples) << text;
    EXPECT_EQ(config.SnapshotEvery(), shown);
    config.store = "/s";
    EXPECT_TRUE(config.Validate().ok()) << config.Validate();
  }
  for (const char* text :
       {"10", "minutes", "samples", "-5samples", "0samples", "1e30samples", "10min,often"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(config.SetSnapshotEvery(text))) << text;
  }
}

}  // namespace
}  // namespace covey::scheduler
