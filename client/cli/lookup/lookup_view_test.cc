// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lookup/lookup_view.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LookedUpRows Rows() {
  return {.table = "items",
          .width = 2,
          .keys = {7, ~uint64_t{0}},
          .values = {1, -0.25f, 3e-9f, std::numeric_limits<float>::quiet_NaN()},
          .version = 12,
          .age_seconds = 75};
}

TEST(LookupViewTest, ShowsALineForEachKey) {
  EXPECT_EQ(LookupText(Rows()),
            "                 KEY      0  1\n"
            "                   7      1  -0.25\n"
            "18446744073709551615  3e-09  nan\n"
            "table items, version 12, updated 75 s ago; a row that no push has made yet shows its "
            "first values\n");
}

TEST(LookupViewTest, CutsWideRows) {
  LookedUpRows rows = Rows();
  rows.width = 64;
  rows.keys = {7};
  rows.values.assign(64, 0.5f);
  EXPECT_THAT(LookupText(rows), HasSubstr("OF 64"));
  EXPECT_THAT(LookupText(rows), HasSubstr("..."));
  EXPECT_EQ(nlohmann::json::parse(LookupJson(rows))["rows"][0]["values"].size(), 64u);
  rows.width = kColumnsShown;
  rows.values.resize(kColumnsShown);
  EXPECT_THAT(LookupText(rows), Not(HasSubstr("OF")));
}

TEST(LookupViewTest, GivesPrograms) {
  const nlohmann::json json = nlohmann::json::parse(LookupJson(Rows()));
  EXPECT_EQ(json["table"], "items");
  EXPECT_EQ(json["width"], 2);
  EXPECT_EQ(json["version"], 12);
  EXPECT_EQ(json["age_seconds"], 75);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["key"], "7");
  EXPECT_EQ(json["rows"][0]["values"], (std::vector<float>{1, -0.25f}));
  EXPECT_EQ(json["rows"][1]["key"], "18446744073709551615");
  EXPECT_TRUE(json["rows"][1]["values"][1].is_null());
}

}  // namespace
}  // namespace covey::cli
