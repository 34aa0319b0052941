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
      {{.groups = 5000, .workers_per_group = 2}, "groups = 5000"},
      {{.heartbeat = absl::ZeroDuration()}, "heartbeat = 0"},
      {{.silence_min = absl::Milliseconds(600)}, "silence-min = 600ms"},
      {{.placement_wait = absl::Hours(2)}, "placement-wait = 2h"},
      {{.regroup_after = absl::Hours(2)}, "regroup-after = 2h"},
      {{.stragglers = {.slow_ratio = 1.1}}, "straggler-ratio = 1.1"},
      {{.stragglers = {.partial_minimum = 5000}}, "partial-reduce-minimum = 5000"},
      {{.stragglers = {.partial_grace = absl::Hours(1)}}, "partial-reduce-grace = 1h"},
      {{.stragglers = {.group_members_min = 0}}, "group-members-min = 0"},
      {{.stragglers = {.probation = absl::ZeroDuration()}}, "straggler-probation = 0"},
      {{.port = 65536}, "port = 65536"},
  };
  for (const auto& [config, named] : cases) {
    const absl::Status status = config.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(status.message().find(named), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace covey::scheduler
