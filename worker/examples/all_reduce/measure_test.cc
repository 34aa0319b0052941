// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/all_reduce/measure.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::all_reduce {
namespace {

std::vector<float> Sums(uint32_t members) {
  std::vector<float> sums(1000);
  for (size_t i = 0; i < sums.size(); ++i) {
    for (uint32_t rank = 0; rank < members; ++rank) sums[i] += Term(rank, i);
  }
  return sums;
}

TEST(MeasureTest, TheRightSumHasNoError) { EXPECT_EQ(ErrorOf(Sums(5), 5), 0); }

TEST(MeasureTest, AMissingMemberAndAWrongElementAreErrors) {
  EXPECT_GT(ErrorOf(Sums(4), 5), 0.01);
  std::vector<float> sums = Sums(5);
  sums[999] += 1;
  EXPECT_GT(ErrorOf(sums, 5), 0);
  sums[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(ErrorOf(sums, 5)));
}

TEST(MeasureTest, TheMedianIsInTheMiddle) {
  EXPECT_EQ(Outcome().Median(), absl::ZeroDuration());
  EXPECT_EQ((Outcome{.durations = {absl::Seconds(9), absl::Seconds(1), absl::Seconds(2)}}.Median()),
            absl::Seconds(2));
}

TEST(MeasureTest, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(Options().Validate().ok());
  EXPECT_THAT(std::string(Options{.bytes = 3}.Validate().message()),
              ::testing::HasSubstr("--bytes is 3"));
  EXPECT_FALSE((Options{.repetitions = 0}.Validate().ok()));
}

}  // namespace
}  // namespace covey::all_reduce
