// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/operation_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace covey::cli {
namespace {

using client::Handle;
using client::OperationResult;

Handle Done() { return Handle(OperationResult{.status = absl::OkStatus()}); }
Handle Failed() { return Handle(OperationResult{.status = absl::UnavailableError("gone")}); }

TEST(RateTest, EachClientKeepsItsLanesInFlight) {
  std::map<std::pair<int, int>, int> started;
  std::vector<Start> starts;
  for (int client = 0; client < 2; ++client) {
    starts.push_back([&started, client](int lane) {
      ++started[{client, lane}];
      return Done();
    });
  }
  const auto sample =
      RateOfAll(starts, {.bytes = 1000, .outstanding = 3, .duration = absl::Milliseconds(1)});
  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(started.size(), 6u);
  uint64_t all = 0;
  for (const auto& [place, count] : started) all += static_cast<uint64_t>(count);
  EXPECT_EQ(sample->operations, all);
  EXPECT_EQ(sample->bytes, all * 1000);
  EXPECT_GT(sample->values[0], 0);
}

TEST(RateTest, MeasuresSeveralOperationsHoweverShortTheTurn) {
  const auto sample =
      RateOfAll({[](int) { return Done(); }}, {.bytes = 4, .duration = absl::ZeroDuration()});
  ASSERT_TRUE(sample.ok());
  EXPECT_GE(sample->operations, 5u);
}

TEST(TurnTest, AFailureEndsIt) {
  const Start fails = [](int) { return Failed(); }, works = [](int) { return Done(); };
  const OperationTurn turn = {.bytes = 4, .round_trips = 3};
  EXPECT_FALSE(RateOfAll({works, fails}, turn).ok());
  EXPECT_FALSE(RoundTrips(fails, turn).ok());
  EXPECT_FALSE(OnePullAtATime(works, fails, turn).ok());
  EXPECT_FALSE(OnePullAtATime(fails, works, turn).ok());
  EXPECT_FALSE(SmallBesideLarge(works, fails, turn).ok());
  EXPECT_FALSE(SmallBesideLarge(fails, works, turn).ok());
}

TEST(RoundTripsTest, GivesQuantilesInOrder) {
  int count = 0;
  const auto sample = RoundTrips(
      [&count](int) {
        ++count;
        return Done();
      },
      {.bytes = 64, .round_trips = 100});
  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(count, 100);
  ASSERT_EQ(sample->values.size(), 3u);
  EXPECT_LE(sample->values[0], sample->values[1]);
  EXPECT_LE(sample->values[1], sample->values[2]);
}

TEST(OnePullAtATimeTest, PushesBeforeEachPull) {
  std::string order;
  const Start push = [&order](int) {
    order += "p";
    return Done();
  };
  const Start pull = [&order](int) {
    order += "l";
    return Done();
  };
  const auto sample = OnePullAtATime(push, pull, {.bytes = 4, .duration = absl::ZeroDuration()});
  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(order, "plplplpl");
  EXPECT_EQ(sample->operations, 4u);
}

TEST(SmallBesideLargeTest, PullsUntilAllPushesHaveEnded) {
  int pushes = 0, pulls = 0;
  const auto sample = SmallBesideLarge(
      [&pushes](int) {
        ++pushes;
        return Done();
      },
      [&pulls](int) {
        ++pulls;
        return Done();
      },
      {.bytes = 4, .outstanding = 2, .duration = absl::ZeroDuration()});
  ASSERT_TRUE(sample.ok());
  EXPECT_GT(pulls, 0);
  EXPECT_EQ(sample->operations, static_cast<uint64_t>(pushes));
  EXPECT_EQ(sample->values.size(), 4u);
}

}  // namespace
}  // namespace covey::cli
