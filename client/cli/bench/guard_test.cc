// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace covey::cli {
namespace {

using Runs = std::vector<std::vector<Figure>>;
using Verdict = Comparison::Verdict;

// One run per value, with a figure of this name and unit.
Runs RunsOf(const std::vector<double>& values, const std::string& what = "covey push",
            const std::string& unit = "GB/s") {
  Runs runs;
  for (const double value : values) {
    runs.push_back({Figure{
        .what = what, .transport = "tcp", .bytes = 64, .unit = unit, .repetitions = {value}}});
  }
  return runs;
}

TEST(GuardTest, ASlowerBuildIsFoundAlthoughTheMachineSwings) {
  // Pairs differ by 10 % while the machine swings by a factor of two.
  const auto rows = Compare(RunsOf({0.9, 1.8, 1.35, 0.9, 1.8, 1.35, 0.9}),
                            RunsOf({1.0, 2.0, 1.5, 1.0, 2.0, 1.5, 1.0}), 0.03);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].verdict, Verdict::kSlower);
  EXPECT_NEAR(rows[0].ratio, 0.9, 1e-9);
  EXPECT_TRUE(HasSlower(rows));
}

TEST(GuardTest, EqualBuildsPassAndNoiseIsUnclear) {
  const auto equal = Compare(RunsOf({1.0, 1.1, 0.9}), RunsOf({1.0, 1.1, 0.9}), 0.03);
  EXPECT_EQ(equal[0].verdict, Verdict::kNotSlower);
  const auto noise = Compare(RunsOf({1.0, 1.0, 1.0}), RunsOf({0.5, 1.0, 2.0}), 0.03);
  EXPECT_EQ(noise[0].verdict, Verdict::kUnclear);
  EXPECT_FALSE(HasSlower(noise));
}

TEST(GuardTest, LongerTimesAreSlower) {
  const auto rows = Compare(RunsOf({120, 121, 119}, "covey push p50", "us"),
                            RunsOf({100, 100, 100}, "covey push p50", "us"), 0.03);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].verdict, Verdict::kSlower);
}

TEST(GuardTest, ComparesNeitherTailsNorLimitsNorWhatOneLacks) {
  EXPECT_TRUE(
      Compare(RunsOf({1}, "covey push p99", "us"), RunsOf({1}, "covey push p99", "us"), 0).empty());
  EXPECT_TRUE(Compare(RunsOf({1}, "raw socket"), RunsOf({1}, "raw socket"), 0).empty());
  EXPECT_TRUE(Compare(RunsOf({1}, "covey pull"), RunsOf({1}, "covey push"), 0).empty());
}

TEST(GuardTest, PrintsVerdicts) {
  const auto rows = Compare(RunsOf({1.0, 1.0, 1.0}), RunsOf({2.0, 2.0, 2.0}), 0.03);
  EXPECT_THAT(ComparisonsAsTable(rows), ::testing::HasSubstr("slower"));
  const auto json = nlohmann::json::parse(ComparisonsAsJson(rows, BenchOptions()));
  EXPECT_EQ(json["slower"], true);
  EXPECT_EQ(json["rows"][0]["verdict"], "slower");
  EXPECT_EQ(json["rows"][0]["speed_ratio"], 0.5);
}

}  // namespace
}  // namespace covey::cli
