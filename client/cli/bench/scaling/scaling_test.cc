// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/scaling/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = ScalingPlan::Kind;

ScalingPlan PlanOf(Kind kind) {
  return {.kind = kind,
          .batch = 64,
          .program = {"train", "--batch={worker_batch}", "--group-batch", "{batch}"}};
}

// Of 1, 2 and 4 workers; the rate of 2 is in the middle of three repetitions.
std::vector<ScalingRow> SomeRows() {
  return {{.workers = 1, .repetitions = {100}},
          {.workers = 2, .repetitions = {300, 180, 20}},
          {.workers = 4, .repetitions = {200}}};
}

TEST(ScalingTest, WeakScalingKeepsTheBatchOfAWorkerAndStrongScalingThatOfAll) {
  EXPECT_THAT(PlanOf(Kind::kWeak).ProgramFor(4),
              ElementsAre("train", "--batch=64", "--group-batch", "256"));
  EXPECT_THAT(PlanOf(Kind::kStrong).ProgramFor(4),
              ElementsAre("train", "--batch=16", "--group-batch", "64"));
}

TEST(ScalingTest, EfficiencyIsTheRatePerWorkerBesideTheBaselines) {
  const auto json = nlohmann::json::parse(ScalingAsJson(PlanOf(Kind::kWeak), SomeRows(), 2));
  EXPECT_EQ(json["scaling"], "weak");
  EXPECT_EQ(json["baseline"], (nlohmann::json{{"workers", 1}, {"samples_per_second", 100.0}}));
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][0]["efficiency"], 1.0);
  EXPECT_EQ(json["rows"][1]["samples_per_second"], 180.0);
  EXPECT_EQ(json["rows"][1]["speedup"], 1.8);
  EXPECT_EQ(json["rows"][1]["efficiency"], 0.9);
  EXPECT_EQ(json["rows"][2]["batch"], 256);
  EXPECT_EQ(json["rows"][2]["efficiency"], 0.5);
}

TEST(ScalingTest, TheBaselineIsTheFirstNumberOfWorkers) {
  ScalingPlan plan = PlanOf(Kind::kStrong);
  plan.workers = {2, 4};
  const std::vector<ScalingRow> rows = {{.workers = 2, .repetitions = {100}},
                                        {.workers = 4, .repetitions = {150}}};
  const auto json = nlohmann::json::parse(ScalingAsJson(plan, rows, 8));
  EXPECT_EQ(json["baseline"]["workers"], 2);
  EXPECT_EQ(json["rows"][1]["efficiency"], 0.75);
  const std::string table = ScalingAsTable(plan, rows, 8);
  EXPECT_THAT(table, HasSubstr("strong scaling; baseline: 2 workers, 100 samples/s"));
  EXPECT_THAT(table, Not(HasSubstr("cores")));
  EXPECT_THAT(ScalingAsTable(plan, rows, 2),
              HasSubstr("this machine has 2 cores, fewer than workers in some runs"));
}

TEST(ScalingTest, ARateIsThatOfTheResult) {
  EXPECT_EQ(*RateIn(R"({"samples_per_second": 12.5})"), 12.5);
  for (const char* result :
       {"", "{}", R"({"samples_per_second": 0})", R"({"samples_per_second": "fast"})"}) {
    EXPECT_THAT(RateIn(result).status().message(), HasSubstr("samples_per_second")) << result;
  }
}

TEST(ScalingTest, WhatCannotBeComparedIsRefused) {
  const auto refusal = [](auto change) {
    ScalingPlan plan = PlanOf(Kind::kStrong);
    change(plan);
    return std::string(plan.Validate().message());
  };
  EXPECT_EQ(refusal([](ScalingPlan&) {}), "");
  EXPECT_THAT(refusal([](ScalingPlan& plan) { plan.program.clear(); }), HasSubstr("no program"));
  EXPECT_THAT(refusal([](ScalingPlan& plan) { plan.program = {"{batch}"}; }),
              HasSubstr("says how many samples"));
  EXPECT_THAT(refusal([](ScalingPlan& plan) { plan.workers = {2, 2}; }), HasSubstr("growing"));
  EXPECT_THAT(refusal([](ScalingPlan& plan) { plan.workers.clear(); }), HasSubstr("growing"));
  EXPECT_THAT(refusal([](ScalingPlan& plan) {
                plan.workers = {1, 3};
              }),
              HasSubstr("--batch is 64, which 3 workers cannot divide evenly"));
  for (const Kind kind : {Kind::kWeak, Kind::kStrong}) {
    for (const uint64_t batch : {uint64_t{0}, uint64_t{1} << 62}) {
      EXPECT_THAT(refusal([&](ScalingPlan& plan) {
                    plan.kind = kind;
                    plan.batch = batch;
                  }),
                  HasSubstr(absl::StrCat("--batch is ", batch, "; choose")));
    }
  }
}

}  // namespace
}  // namespace covey::cli
