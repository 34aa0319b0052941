// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/server_times.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }
constexpr absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

TEST(ServerTimesTest, OnlyTheTimeOfAnUpdateIsTheServers) {
  ServerTimes times;
  EXPECT_EQ(times.Within(At(0), At(100)), Ms(0));
  times.Begin(At(10));
  EXPECT_EQ(times.Within(At(0), At(100)), Ms(90)) << "it goes on";
  times.End(At(30));
  times.End(At(50));  // It has ended.
  EXPECT_EQ(times.Within(At(0), At(100)), Ms(20));
  EXPECT_EQ(times.Within(At(20), At(100)), Ms(10));
  EXPECT_EQ(times.Within(At(15), At(25)), Ms(10));
  EXPECT_EQ(times.Within(At(30), At(100)), Ms(0));
}

TEST(ServerTimesTest, AnUpdateWithoutServersTakesNoPlace) {
  ServerTimes times;
  times.Begin(At(10));
  times.End(At(30));
  for (int64_t ms = 40; ms < 60; ++ms) {
    times.Begin(At(ms));
    times.End(At(ms));
    times.RunOver(At(ms));
  }
  EXPECT_EQ(times.Within(At(0), At(100)), Ms(20));
}

TEST(ServerTimesTest, TheNewestTimesAreKept) {
  ServerTimes times;
  for (int64_t run = 1; run <= 6; ++run) {
    times.Begin(At(10 * run));
    times.End(At(10 * run + 1));
  }
  EXPECT_EQ(times.Within(At(0), At(100)), static_cast<int64_t>(ServerTimes::kSpans) * Ms(1));
  EXPECT_EQ(times.Within(At(60), At(100)), Ms(1));
}

TEST(ServerTimesTest, WhatFollowsARunBelongsToTheLastStageThatTookTime) {
  ServerTimes alone;
  alone.Begin(At(10));
  alone.End(At(30));
  alone.RunOver(At(30));  // A group of one gathers nothing.
  EXPECT_EQ(alone.Within(At(0), At(100)), Ms(90));
  alone.End(At(40));  // The next run begins, and asks servers at once.
  alone.Begin(At(40));
  EXPECT_EQ(alone.Within(At(0), At(100)), Ms(90));

  ServerTimes with_others;
  with_others.Begin(At(10));
  with_others.End(At(30));
  with_others.RunOver(At(31));
  EXPECT_EQ(with_others.Within(At(0), At(100)), Ms(20));
}

}  // namespace
}  // namespace covey::worker
