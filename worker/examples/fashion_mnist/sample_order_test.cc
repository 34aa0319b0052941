// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/sample_order.h"

#include <algorithm>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::fashion_mnist {
namespace {

using ::testing::ElementsAreArray;

std::vector<uint32_t> Sorted(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// The samples that all workers together train on in `epoch`, rank by rank within each step.
std::vector<uint32_t> SamplesOfEpoch(SampleOrder::Options options, uint64_t epoch) {
  std::vector<SampleOrder> orders;
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    orders.emplace_back(options).StartEpoch(epoch);
  }
  std::vector<uint32_t> samples;
  for (size_t step = 0; step < orders[0].steps_per_epoch(); ++step) {
    size_t least = options.batch_size;
    size_t most = 0;
    for (const SampleOrder& order : orders) {
      const std::span<const uint32_t> batch = order.Batch(step);
      samples.insert(samples.end(), batch.begin(), batch.end());
      least = std::min(least, batch.size());
      most = std::max(most, batch.size());
    }
    EXPECT_LE(most, options.batch_size);
    EXPECT_LE(most - least, 1);
  }
  return samples;
}

TEST(SampleOrderTest, VisitsEverySampleOncePerEpochForAnySizes) {
  for (const size_t sample_count : {1, 2, 7, 24, 100}) {
    for (const size_t world_size : {1, 2, 3, 4, 5}) {
      for (const size_t batch_size : {1, 4, 200}) {
        const std::vector<uint32_t> samples = SamplesOfEpoch({.sample_count = sample_count,
                                                              .batch_size = batch_size,
                                                              .world_size = world_size,
                                                              .seed = 3},
                                                             1);
        std::vector<uint32_t> all(sample_count);
        std::iota(all.begin(), all.end(), 0);
        EXPECT_THAT(Sorted(samples), ElementsAreArray(all))
            << sample_count << " samples, " << world_size << " workers, batch " << batch_size;
      }
    }
  }
}

TEST(SampleOrderTest, AStepUsesTheSameSamplesForAnyNumberOfWorkers) {
  const auto samples = [](size_t world_size) {
    return SamplesOfEpoch(
        {.sample_count = 50, .batch_size = 8 / world_size, .world_size = world_size, .seed = 3}, 2);
  };
  EXPECT_EQ(samples(1), samples(2));
  EXPECT_EQ(samples(1), samples(4));
}

TEST(SampleOrderTest, EpochAndSeedChangeTheOrder) {
  const SampleOrder::Options options = {
      .sample_count = 50, .batch_size = 8, .world_size = 1, .seed = 3};
  SampleOrder::Options other_seed = options;
  other_seed.seed = 4;
  EXPECT_NE(SamplesOfEpoch(options, 0), SamplesOfEpoch(options, 1));
  EXPECT_NE(SamplesOfEpoch(options, 0), SamplesOfEpoch(other_seed, 0));
}

TEST(SampleOrderTest, AnEpochDoesNotDependOnThoseBefore) {
  SampleOrder order({.sample_count = 50, .batch_size = 50, .world_size = 1, .seed = 3});
  const std::vector<uint32_t> first(order.Batch(0).begin(), order.Batch(0).end());
  order.StartEpoch(5);
  order.StartEpoch(0);
  EXPECT_THAT(order.Batch(0), ElementsAreArray(first));
}

// Computed by a second implementation. A change would make new runs incomparable with old ones.
TEST(SampleOrderTest, TheOrderNeverChanges) {
  SampleOrder order({.sample_count = 8, .batch_size = 8, .world_size = 1, .seed = 1});
  EXPECT_THAT(order.Batch(0), ElementsAreArray({5, 0, 6, 1, 7, 3, 4, 2}));
}

}  // namespace
}  // namespace covey::fashion_mnist
