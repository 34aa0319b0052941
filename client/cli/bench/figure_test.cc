// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace covey::cli {
namespace {

TEST(QuantileTest, TakesMeasuredValues) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2}, 0), 1);
  EXPECT_EQ(Quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(Quantile({7}, 0.99), 7);
}

TEST(FigureTest, PrintsWhatItHolds) {
  const Figure figure{.what = "covey push",
                      .transport = "tcp",
                      .bytes = 4096,
                      .unit = "GB/s",
                      .repetitions = {0.3, 0.1, 0.2}};
  const auto json = nlohmann::json::parse(FiguresAsJson({figure}));
  EXPECT_EQ(json[0]["median"], 0.2);
  EXPECT_EQ(json[0]["max"], 0.3);
  EXPECT_THAT(FiguresAsTable({figure}), ::testing::HasSubstr("(0.100..0.300)"));
}

TEST(FigureTest, ReadsWhatItWroteAndRefusesTheRest) {
  const Figure figure{
      .what = "covey pull", .transport = "ipc", .bytes = 64, .unit = "us", .repetitions = {7, 8}};
  const auto figures = FiguresFromJson(FiguresAsJson({figure, figure}));
  ASSERT_TRUE(figures.ok());
  ASSERT_EQ(figures->size(), 2u);
  EXPECT_EQ((*figures)[1].repetitions, figure.repetitions);
  EXPECT_EQ((*figures)[1].transport, "ipc");
  for (const char* text :
       {"", "{}", "[1]", "[{}]", R"([{"repetitions":[]}])", R"([{"repetitions":["x"]}])"}) {
    EXPECT_FALSE(FiguresFromJson(text).ok()) << text;
  }
}

}  // namespace
}  // namespace covey::cli
