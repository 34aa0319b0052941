// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/fusion_plan.h"

#include <numeric>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;

using Buckets = std::vector<std::vector<size_t>>;

Buckets Plan(const std::vector<uint64_t>& bytes, const FusionLimits& limits) {
  std::vector<FusionTensor> tensors;
  tensors.reserve(bytes.size());
  for (const uint64_t count : bytes) tensors.push_back({.bytes = count});
  return PlanFusion(tensors, limits);
}

TEST(FusionPlanTest, AThousandSmallTensorsShareFourBuckets) {
  const Buckets buckets = Plan(std::vector<uint64_t>(1000, 4 << 10), {});
  ASSERT_EQ(buckets.size(), 4u);
  // Buckets are filled from the end of the model, where the backward pass begins.
  EXPECT_EQ(buckets[0].size(), 1000u - 3 * 256);
  EXPECT_EQ(buckets[3].size(), 256u);
  EXPECT_EQ(buckets[3].back(), 999u);
}

TEST(FusionPlanTest, LargeTensorsTravelAlone) {
  EXPECT_THAT(Plan({10, 100, 10, 10}, {.tensor_bytes = 100}),
              ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1)));
}

TEST(FusionPlanTest, ABucketDoesNotReachFartherThanItsSpan) {
  const FusionLimits limits{.tensor_bytes = 50, .bucket_bytes = 1000, .span_bytes = 120};
  EXPECT_THAT(Plan({10, 100, 10, 100, 10}, limits),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2, 4), ElementsAre(3)));
}

TEST(FusionPlanTest, KindsStayApart) {
  const FusionKind plain;
  for (const FusionKind& other :
       {FusionKind{.format = WireFormat::kFloat16},
        FusionKind{.value_format = WireFormat::kFloat16}, FusionKind{.members_update = true},
        FusionKind{.is_local = true}}) {
    const std::vector<FusionTensor> tensors = {{8, plain}, {8, other}, {8, plain}, {8, other}};
    EXPECT_THAT(PlanFusion(tensors, {}), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  }
}

TEST(FusionPlanTest, CanBeTurnedOff) {
  EXPECT_THAT(Plan({1, 1, 1}, {.bucket_bytes = 0}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(FusionPlanTest, RandomModelsAreCoveredOnceWithinTheLimits) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const FusionLimits limits{.tensor_bytes = 1 + random.Below(64),
                              .bucket_bytes = random.Below(256),
                              .span_bytes = 1 + random.Below(512)};
    std::vector<uint64_t> bytes;
    for (uint64_t t = 0; t < 1 + random.Below(60); ++t) bytes.push_back(1 + random.Below(100));
    const Buckets buckets = Plan(bytes, limits);
    std::vector<int> seen(bytes.size(), 0);
    size_t previous = 0;
    for (const std::vector<size_t>& bucket : buckets) {
      ASSERT_FALSE(bucket.empty());
      EXPECT_TRUE(&bucket == &buckets.front() || bucket.front() > previous);
      previous = bucket.front();
      uint64_t sum = 0;
      for (const size_t tensor : bucket) {
        ++seen[tensor];
        sum += bytes[tensor];
        if (bucket.size() > 1) {
          EXPECT_LT(bytes[tensor], limits.tensor_bytes);
        }
      }
      if (bucket.size() == 1) continue;
      EXPECT_LE(sum, limits.bucket_bytes);
      const auto first = bytes.begin() + static_cast<ptrdiff_t>(bucket.front());
      const auto last = bytes.begin() + static_cast<ptrdiff_t>(bucket.back());
      EXPECT_LE(std::accumulate(first, last + 1, uint64_t{0}), limits.span_bytes);
    }
    EXPECT_THAT(seen, testing::Each(1));
  }
}

}  // namespace
}  // namespace covey::worker
