// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

Verdict Example() {
  return {.experiment = "kill-server",
          .setting = "one of three",
          .promises = {{.what = "failover", .measured = 0.5, .bound = 3, .unit = "s"},
                       {.what = "rate",
                        .measured = 97,
                        .bound = 95,
                        .side = Promise::Side::kAtLeast,
                        .unit = "%"}},
          .notes = {{"pushes", "10"}}};
}

TEST(VerdictTest, KeptWhenEveryPromiseIs) {
  Verdict verdict = Example();
  EXPECT_TRUE(verdict.kept());
  EXPECT_THAT(VerdictText(verdict), HasSubstr("all promises kept"));
  verdict.promises[1].measured = 94;
  EXPECT_FALSE(verdict.kept());
  EXPECT_THAT(VerdictText(verdict), HasSubstr("BROKEN"));
  EXPECT_FALSE(Verdict().kept()) << "nothing measured is nothing kept";
}

TEST(VerdictTest, WhatNeverHappenedKeepsNothing) {
  Verdict verdict = Example();
  for (const double value : {INFINITY, NAN}) {
    verdict.promises[0].measured = value;
    EXPECT_FALSE(verdict.kept());
    EXPECT_THAT(VerdictText(verdict), HasSubstr("never"));
    EXPECT_TRUE(nlohmann::json::parse(VerdictJson(verdict))["promises"][0]["measured"].is_null());
  }
}

TEST(VerdictTest, JsonSaysTheSame) {
  const auto json = nlohmann::json::parse(VerdictJson(Example()));
  EXPECT_EQ(json["kept"], true);
  EXPECT_EQ(json["promises"][1]["side"], "at least");
  EXPECT_EQ(json["notes"]["pushes"], "10");
}

}  // namespace
}  // namespace covey::cli
