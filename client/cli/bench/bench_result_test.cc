// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/bench_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

BenchResult Measured() {
  return {.environment = {{"kernel", "Linux 6"}},
          .quietness = {.kept = 7, .rejected = 2, .noisy = 1, .steal_share_max = 0.25},
          .left_out = {"process copy: not permitted"},
          .figures = {Figure{.what = "covey push",
                             .transport = "tcp",
                             .bytes = 64,
                             .unit = "us",
                             .repetitions = {5}}}};
}

TEST(BenchResultTest, ReadsWhatItWroteAndRefusesTheRest) {
  const auto result = ResultFromJson(ResultAsJson(Measured(), 1));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->quietness.rejected, 2u);
  EXPECT_EQ(result->quietness.steal_share_max, 0.25);
  EXPECT_EQ(result->left_out, Measured().left_out);
  EXPECT_EQ(result->figures.size(), 1u);
  for (const char* text : {"", "[]", "{}", R"({"figures":1})"}) {
    EXPECT_FALSE(ResultFromJson(text).ok()) << text;
  }
}

TEST(BenchResultTest, ReadsResultsOfVersionsThatKnewOnlyFigures) {
  EXPECT_TRUE(ResultFromJson(R"({"cores":2,"figures":[]})").ok());
}

TEST(BenchResultTest, AddsClusters) {
  BenchResult all;
  all.Add(Measured());
  all.Add(Measured());
  EXPECT_EQ(all.quietness.kept, 14u);
  EXPECT_EQ(all.quietness.steal_share_max, 0.25);
  EXPECT_EQ(all.figures.size(), 2u);
  // The same in both.
  EXPECT_EQ(all.left_out.size(), 1u);
}

TEST(BenchResultTest, TheTableSaysWhatStandsInTheWayOfBelief) {
  const std::string table = ResultAsTable(Measured());
  for (const char* part : {"covey push", "kernel: Linux 6", "7 repetitions kept, 1 of them noisy",
                           "2 rejected", "25.0 %", "not measured: process copy: not permitted"}) {
    EXPECT_THAT(table, HasSubstr(part));
  }
}

}  // namespace
}  // namespace covey::cli
