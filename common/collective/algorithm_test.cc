// SPDX-License-Identifier: Apache-2.0
#include "common/collective/algorithm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::HasSubstr;

TEST(AlgorithmTest, NamesReadBack) {
  for (const Algorithm algorithm : kAlgorithms) {
    EXPECT_EQ(*ParseAlgorithm(AlgorithmName(algorithm)), algorithm);
  }
  EXPECT_EQ(*ParseAlgorithm("auto"), Algorithm::kAutomatic);
  EXPECT_THAT(ParseAlgorithm("rings").status().message(),
              HasSubstr("'rings'; choose one of auto, direct, ring"));
}

}  // namespace
}  // namespace covey
