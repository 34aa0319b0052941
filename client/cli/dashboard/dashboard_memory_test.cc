// SPDX-License-Identifier: Apache-2.0
#include "client/cli/dashboard/dashboard_memory.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using nlohmann::json;

const absl::Time kStart = absl::UnixEpoch();

absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

json Told(const DashboardMemory& memory, int seconds, uint64_t since = 0) {
  return json::parse(memory.JsonSince(At(seconds), since));
}

TEST(DashboardMemoryTest, TellsTheState) {
  DashboardMemory memory(kStart);
  EXPECT_TRUE(Told(memory, 0)["state"].is_null());
  memory.Take(At(1), StatusForTests());
  const json state = Told(memory, 1)["state"];
  EXPECT_EQ(state["job"], "mnist");
  EXPECT_EQ(state["healthy"], false);
  EXPECT_EQ(state["problems"].size(), 2U);
  EXPECT_EQ(state["nodes"].size(), 6U);
  EXPECT_EQ(state["nodes"][1]["pace"], "straggler");
  EXPECT_EQ(state["groups"][0]["samples_per_second"], 2500);
  EXPECT_EQ(state["groups"][1]["state"], "broken");
  EXPECT_EQ(state["tables"][0]["contract"], "ssp:3");
  EXPECT_EQ(state["tables"][0]["bound"], 3);
  EXPECT_EQ(state["tables"][0]["shards"][0], json::parse("[[2, 0]]"));
}

TEST(DashboardMemoryTest, TellsOnlyWhatIsNew) {
  DashboardMemory memory(kStart);
  memory.Take(At(1), StatusForTests());
  const json first = Told(memory, 1);
  EXPECT_EQ(first["events"].size(), 2U);
  EXPECT_EQ(first["points"].size(), 1U);
  EXPECT_EQ(first["points"][0]["groups"]["0"], json::parse("[2500, 0.4, 3904]"));
  const uint64_t sequence = first["sequence"];
  EXPECT_EQ(Told(memory, 1, sequence)["events"].size(), 0U);
  proto::StatusReply next = StatusForTests();
  next.mutable_events()->DeleteSubrange(0, 1);
  memory.Take(At(2), next);
  EXPECT_EQ(Told(memory, 2, sequence)["events"].size(), 1U);
  EXPECT_EQ(Told(memory, 2, sequence)["points"].size(), 1U);
}

TEST(DashboardMemoryTest, KeepsTheStateWithoutAScheduler) {
  DashboardMemory memory(kStart);
  memory.Take(At(1), StatusForTests());
  memory.Take(At(2), absl::UnavailableError("no scheduler answers"));
  memory.Take(At(3), absl::UnavailableError("no scheduler answers"));
  json told = Told(memory, 9);
  EXPECT_EQ(told["contact"]["connected"], false);
  EXPECT_EQ(told["contact"]["since"], 2000);
  EXPECT_EQ(told["contact"]["last"], 1000);
  EXPECT_EQ(told["contact"]["error"], "no scheduler answers");
  EXPECT_EQ(told["state"]["job"], "mnist");
  proto::StatusReply restarted = StatusForTests();
  restarted.set_uptime_ms(5);
  memory.Take(At(10), restarted);
  told = Told(memory, 10);
  EXPECT_EQ(told["contact"]["connected"], true);
  EXPECT_EQ(told["contact"]["since"], 10000);
  EXPECT_EQ(told["contact"]["restarts"], 1);
}

TEST(DashboardMemoryTest, IsBounded) {
  DashboardMemory memory(kStart);
  for (int i = 0; i < 2000; ++i) memory.Take(At(i), StatusForTests());
  const json told = Told(memory, 2000);
  EXPECT_EQ(told["events"].size(), DashboardMemory::kEventsMax);
  EXPECT_LE(told["points"].size(), DashboardMemory::kPointsMax);
  // The history reaches back to the beginning.
  EXPECT_LE(told["points"][0]["at"], 2000);
  EXPECT_GE(told["points"].back()["at"], 1990000);
}

}  // namespace
}  // namespace covey::cli
