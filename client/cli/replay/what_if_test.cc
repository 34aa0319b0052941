// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/what_if.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

TEST(WhatIf, ParsesAnOptimizer) {
  server::WhatIf what_if;
  ASSERT_TRUE(ParseOptimizer("lamb", what_if).ok());
  EXPECT_EQ(what_if.optimizer->kind, OptimizerKind::kLamb);
  EXPECT_FALSE(what_if.base_rate);
  ASSERT_TRUE(ParseOptimizer("adam:beta1=0.5,epsilon=1e-6,lr=0.25", what_if).ok());
  EXPECT_EQ(OptimizerText(what_if), "adam");
  EXPECT_EQ(what_if.optimizer->beta1, 0.5);
  EXPECT_EQ(what_if.optimizer->epsilon, 1e-6);
  EXPECT_EQ(what_if.base_rate, 0.25);
}

TEST(WhatIf, RefusesWhatIsNoOptimizer) {
  const auto refusal = [](const char* text) {
    server::WhatIf what_if;
    const absl::Status status = ParseOptimizer(text, what_if);
    EXPECT_FALSE(what_if.changes_something()) << text;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("adamm"), HasSubstr("choose sgd, momentum, nesterov"));
  EXPECT_THAT(refusal("adam:beta=1"), HasSubstr("'beta' is no field"));
  EXPECT_THAT(refusal("adam:beta1"), HasSubstr("FIELD=NUMBER"));
  EXPECT_THAT(refusal("adam:beta1=2"), HasSubstr("beta1"));
  EXPECT_THAT(refusal("delayed_nesterov:delay=nan"), HasSubstr("'delay' is no field"));
}

TEST(WhatIf, MeasuresDistances) {
  const auto shard = [](const std::vector<float>& values) {
    server::ReplayedShard replayed;
    replayed.updates = 10;
    replayed.values = Buffer::CopyOf(
        {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)});
    return replayed;
  };
  TableDistance table{.name = "weights"};
  table.Add(shard({3, 0}), shard({0, 0}));
  table.Add(shard({0, 4}), shard({0, 8}));
  const std::string text = DistanceText({table}, {.contract = Contract{.buffer = 3}});
  EXPECT_EQ(text,
            "TABLE    UPDATES  RECORDED  NORM  RECORDED  DISTANCE\n"
            "weights       20        20     8         5         5\n"
            "the same arrivals under buffered:3: workers would have waited elsewhere, and pushed "
            "in another order\n");
  EXPECT_THAT(DistanceJson({table}, {.base_rate = 1}), HasSubstr("\"distance\": 5.0"));
}

}  // namespace
}  // namespace covey::cli
