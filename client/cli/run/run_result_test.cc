// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::Contains;
using ::testing::Pair;

RunOptions SomeOptions() {
  return {.servers = 2, .groups = 2, .workers_per_group = 3, .program = {"/bin/train", "--fast"}};
}

RunOutcome SomeOutcome() {
  RunOutcome outcome;
  outcome.result =
      R"({"test_accuracy": 0.88123, "samples": 60000, "contract": "bsp", "workers": 99})";
  outcome.wall = absl::Milliseconds(61234);
  outcome.history.Add(absl::Seconds(13), StatusForTests());
  return outcome;
}

TEST(RunResultTest, OneLineWithWhatTheProgramSaidAndWhatTheLauncherKnows) {
  EXPECT_EQ(ResultLine(SomeOptions(), SomeOutcome()),
            R"({"test_accuracy":0.88123,"samples":60000,"contract":"bsp","workers":6,)"
            R"("servers":2,"groups":2,"wall_seconds":61.234,)"
            R"("step_times":{"step_seconds":0.07,"computation_seconds":0.04,"input_seconds":0.01,)"
            R"("group_seconds":0.01,"servers_seconds":0.01,"bottleneck":"computation"}})");
}

TEST(RunResultTest, OneLineSaysWhereTheTimeOfAStepWent) {
  EXPECT_EQ(StepLine(SomeOutcome()),
            "a step takes 70.0 ms: computation 57 %, input 14 %, waiting for the group 14 %, "
            "waiting for servers 14 %; bottleneck: computation");
  RunOutcome short_run;
  EXPECT_EQ(StepLine(short_run), "");
  short_run.step_sentence = "a step takes 1 ms";
  EXPECT_EQ(StepLine(short_run), "a step takes 1 ms") << "what a worker says of itself";
}

TEST(RunResultTest, OneLineSaysHowManySamplesAndSecondsTheTargetTook) {
  RunOutcome outcome = SomeOutcome();
  EXPECT_EQ(TargetLine(outcome), "") << "the program has no target";
  outcome.result = R"({"samples_to_target": 312032, "seconds_to_target": 14.62})";
  EXPECT_EQ(TargetLine(outcome), "the target was reached after 312,032 samples, in 15 s");
  const auto json = nlohmann::json::parse(ResultLine(SomeOptions(), outcome));
  EXPECT_EQ(json["samples_to_target"], 312032);
  EXPECT_EQ(json["seconds_to_target"], 14.62);
  outcome.result = R"({"samples_to_target": null, "seconds_to_target": null})";
  EXPECT_EQ(TargetLine(outcome), "the target was not reached");
  // Samples alone say little of the time to a solution, and seconds alone little of their cause.
  outcome.result = R"({"samples_to_target": 312032})";
  EXPECT_EQ(TargetLine(outcome), "");
}

TEST(RunResultTest, AProgramThatSaysNothingHasAResultToo) {
  RunOutcome outcome;
  outcome.wall = absl::Seconds(1);
  EXPECT_EQ(ResultLine(SomeOptions(), outcome),
            R"({"servers":2,"groups":2,"workers":6,"wall_seconds":1.0})");
}

TEST(RunResultTest, TheFileHasTheCourseAndTheErrorBesides) {
  RunOutcome outcome = SomeOutcome();
  outcome.status = absl::AbortedError("worker-1 died");
  const auto json = nlohmann::json::parse(ResultFile(SomeOptions(), outcome));
  EXPECT_EQ(json["contract"], "bsp");
  EXPECT_EQ(json["error"], "worker-1 died");
  EXPECT_EQ(json["history"][0]["points"][0]["step"], 31);
  EXPECT_EQ(json["history"][0]["points"][0]["steps_aside"], 4);
  EXPECT_EQ(json["history"][0]["points"][0]["compute_seconds"], 0.06);
  EXPECT_EQ(json["history"][0]["points"][0]["step_times"]["group_seconds"], 0.01);
  EXPECT_EQ(json["events"].size(), 2u);
  outcome.status = absl::OkStatus();
  EXPECT_FALSE(nlohmann::json::parse(ResultFile(SomeOptions(), outcome)).contains("error"));
}

TEST(RunResultTest, TheReportShowsTheSame) {
  RunOutcome outcome = SomeOutcome();
  const Report report = MakeReport(SomeOptions(), outcome, "today");
  EXPECT_EQ(report.title, "train in 2 groups of 3 workers");
  RunOptions planned = SomeOptions();
  planned.plans_groups = true;
  EXPECT_EQ(MakeReport(planned, outcome, "today").title, "train with 3 workers in planned groups");
  EXPECT_EQ(report.outcome, "Finished in 61 s");
  EXPECT_THAT(report.result, Contains(Pair("test_accuracy", "0.8812")));
  EXPECT_THAT(report.result, Contains(Pair("samples", "60,000")));
  EXPECT_THAT(report.configuration, Contains(Pair("program", "/bin/train --fast")));
  EXPECT_EQ(report.history.groups().size(), 1u);

  outcome.status = absl::AbortedError("worker-1 died");
  EXPECT_EQ(MakeReport(SomeOptions(), outcome, "").outcome, "Failed after 61 s: worker-1 died");
}

}  // namespace
}  // namespace covey::cli
