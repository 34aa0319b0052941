// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

Figure Push() {
  return {.what = "covey push",
          .transport = "tcp",
          .bytes = 4096,
          .unit = "GB/s",
          .repetitions = {0.3, 0.1, 0.2},
          .limits = {"raw socket"}};
}

Figure Socket() {
  return {.what = "raw socket",
          .transport = "tcp",
          .bytes = 4096,
          .unit = "GB/s",
          .repetitions = {0.6, 0.1, 0.4}};
}

TEST(FigureTest, PrintsWhatItHolds) {
  const auto json = nlohmann::json::parse(FiguresAsJson({Push()}));
  EXPECT_EQ(json[0]["median"], 0.2);
  EXPECT_EQ(json[0]["max"], 0.3);
  EXPECT_THAT(FiguresAsTable({Push()}), HasSubstr("(0.100..0.300)"));
}

TEST(FigureTest, ReadsWhatItWroteAndRefusesTheRest) {
  Figure figure{
      .what = "covey pull", .transport = "ipc", .bytes = 64, .unit = "us", .repetitions = {7, 8}};
  figure.limits = {"raw socket"};
  figure.steal_shares = {0, 0.25};
  figure.cost = Cost{.user_core_seconds_per_gb = 0.5, .server_pss_bytes = 7};
  const auto figures = FiguresFromJson(FiguresAsJson({figure, figure}));
  ASSERT_TRUE(figures.ok());
  ASSERT_EQ(figures->size(), 2u);
  EXPECT_EQ((*figures)[1].repetitions, figure.repetitions);
  EXPECT_EQ((*figures)[1].transport, "ipc");
  EXPECT_EQ((*figures)[1].limits, figure.limits);
  EXPECT_EQ((*figures)[1].steal_shares, figure.steal_shares);
  ASSERT_TRUE((*figures)[1].cost.has_value());
  EXPECT_EQ((*figures)[1].cost->user_core_seconds_per_gb, 0.5);
  EXPECT_EQ((*figures)[1].cost->server_pss_bytes, 7u);
  for (const char* text : {"", "{}", "[1]", "[{}]", R"([{"repetitions":[]}])",
                           R"([{"repetitions":["x"]}])", R"([{"repetitions":1}])"}) {
    EXPECT_FALSE(FiguresFromJson(text).ok()) << text;
  }
}

TEST(FigureTest, AFieldOfAnotherTypeIsAsGoodAsNone) {
  const auto figures =
      FiguresFromJson(R"([{"what":7,"bytes":"x","limits":[1,"a"],"cost":1,"repetitions":[1]}])");
  ASSERT_TRUE(figures.ok());
  EXPECT_EQ((*figures)[0].what, "");
  EXPECT_EQ((*figures)[0].bytes, 0u);
  EXPECT_THAT((*figures)[0].limits, ::testing::ElementsAre("a"));
  EXPECT_FALSE((*figures)[0].cost.has_value());
}

TEST(FigureTest, ReadsFiguresOfVersionsWithoutLimits) {
  const auto figures = FiguresFromJson(
      R"([{"what":"covey push","transport":"tcp","bytes":64,"unit":"us","repetitions":[3]}])");
  ASSERT_TRUE(figures.ok());
  EXPECT_TRUE((*figures)[0].limits.empty());
  EXPECT_FALSE((*figures)[0].cost.has_value());
}

TEST(RatioTest, DividesRepetitionByRepetition) {
  const auto ratios = RatiosOf(Push(), {Push(), Socket()});
  ASSERT_EQ(ratios.size(), 1u);
  EXPECT_EQ(ratios[0].limit, "raw socket");
  // 0.5, 1 and 0.5: not the ratio of the medians, which would be the same here by chance only.
  EXPECT_EQ(ratios[0].median, 0.5);
  EXPECT_LE(ratios[0].low, ratios[0].median);
  EXPECT_GE(ratios[0].high, ratios[0].median);
  EXPECT_THAT(FiguresAsTable({Push(), Socket()}), HasSubstr("of raw socket"));
}

TEST(RatioTest, LeavesOutLimitsThatWereNotMeasuredForThisSize) {
  Figure other = Socket();
  other.bytes = 64;
  EXPECT_TRUE(RatiosOf(Push(), {Push(), other}).empty());
}

}  // namespace
}  // namespace covey::cli
