// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/sample_shares.h"

#include <cmath>
#include <numeric>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;

TEST(SampleSharesTest, WithoutSharesTheBatchIsDividedEvenly) {
  EXPECT_THAT(DivideSamples(12, {}, 4), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(DivideSamples(14, {}, 4), ElementsAre(4, 4, 3, 3));
  EXPECT_THAT(DivideSamples(3, std::vector<uint32_t>{0, 0}, 2), ElementsAre(2, 1));
}

TEST(SampleSharesTest, InProportionAndTheLargestRemainderFirst) {
  EXPECT_THAT(DivideSamples(100, std::vector<uint32_t>{1, 3}, 2), ElementsAre(25, 75));
  // The exact shares are 1.43, 2.86, 5.71.
  EXPECT_THAT(DivideSamples(10, std::vector<uint32_t>{1, 2, 4}, 3), ElementsAre(1, 3, 6));
  EXPECT_THAT(DivideSamples(10, std::vector<uint32_t>{0, 5}, 2), ElementsAre(0, 10));
}

TEST(SampleSharesTest, RandomSharesAddUpAndAreNeverOffByOneSample) {
  Random random(5);
  for (int round = 0; round < 1000; ++round) {
    const uint32_t members = 1 + static_cast<uint32_t>(random.Below(9));
    const uint64_t batch = random.Below(random.Chance(0.5) ? 100 : uint64_t{1} << 50);
    std::vector<uint32_t> shares;
    for (uint32_t m = 0; m < members; ++m) {
      shares.push_back(static_cast<uint32_t>(random.Below(random.Chance(0.5) ? 4 : 1u << 31)));
    }
    shares[0] += 1;
    const std::vector<uint64_t> samples = DivideSamples(batch, shares, members);
    EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), uint64_t{0}), batch);
    for (uint32_t m = 0; m < members; ++m) {
      const double exact = ShareOf(shares, members, m) * static_cast<double>(batch);
      EXPECT_LT(std::abs(static_cast<double>(samples[m]) - exact), 1.001);
    }
  }
}

}  // namespace
}  // namespace covey::worker
