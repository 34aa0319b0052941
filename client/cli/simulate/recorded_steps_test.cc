// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/recorded_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RecordedStepsTest, LinesInAnyOrderBecomeStepsOfWorkers) {
  const auto recorded = ParseRecordedSteps(
      "{\"worker\": 2, \"step\": 2, \"compute_seconds\": 0.5, \"loss\": 1}\n"
      "\n"
      "{\"worker\": 0, \"step\": 1, \"compute_seconds\": 0.25}\r\n"
      "{\"worker\": 2, \"step\": 1, \"compute_seconds\": 3}\n");
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_THAT(recorded->workers, ElementsAre(ElementsAre(0.25), ElementsAre(3, 0.5)));
  EXPECT_DOUBLE_EQ(recorded->MeanSeconds(), 1.25);
}

TEST(RecordedStepsTest, WhatIsNoTraceIsRefusedByLine) {
  const auto message = [](absl::string_view text) {
    return std::string(ParseRecordedSteps(text).status().message());
  };
  const std::string good = "{\"worker\": 0, \"step\": 1, \"compute_seconds\": 1}\n";
  EXPECT_THAT(message(""), HasSubstr("no steps"));
  EXPECT_THAT(message(good + "{"), HasSubstr("line 2"));
  EXPECT_THAT(message("[1]"), HasSubstr("line 1: not of the form"));
  EXPECT_THAT(message("{\"worker\": -1, \"step\": 1, \"compute_seconds\": 1}"),
              HasSubstr("not of the form"));
  EXPECT_THAT(message("{\"worker\": 0, \"step\": 1, \"compute_seconds\": \"1\"}"),
              HasSubstr("not of the form"));
  EXPECT_THAT(message("{\"worker\": 99999999, \"step\": 1, \"compute_seconds\": 1}"),
              HasSubstr("at most"));
  EXPECT_THAT(message("{\"worker\": 0, \"step\": 1, \"compute_seconds\": -1}"),
              HasSubstr("not a step time"));
  EXPECT_THAT(message(good + good), HasSubstr("line 2: step 1 of worker 0 occurs twice"));
}

}  // namespace
}  // namespace covey::cli
