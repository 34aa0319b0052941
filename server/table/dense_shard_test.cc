// SPDX-License-Identifier: Apache-2.0
#include "server/table/dense_shard.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "server/table/host_memory.h"
#include "server/table/table_memory.h"

namespace covey::server {
namespace {

constexpr DenseShardConfig kConfig = {
    .first_element = 500,
    .element_count = 100,
    .initializer = {.kind = InitializerKind::kNormal, .a = 0, .b = 1, .seed = 3},
    .optimizer = {.kind = OptimizerKind::kAdam},
    .learning_rate = {.base_rate = 0.1, .warmup_samples = 100},
};

std::unique_ptr<DenseShard> Open(const DenseShardConfig& config, TableMemory& memory) {
  return DenseShard::Create(config, memory).value();
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

std::vector<float> RandomGradient(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<float> gradient(count);
  for (float& x : gradient) x = static_cast<float>(random.Uniform() * 2 - 1);
  return gradient;
}

class DenseShardTest : public testing::Test {
 protected:
  BufferPool spares_{1 << 20};
  HostMemory memory_{spares_};
};

TEST_F(DenseShardTest, StartsWithItsRangeOfTheTable) {
  const auto shard = Open(kConfig, memory_);
  std::vector<float> table(600);
  Initialize(kConfig.initializer, 0, table);
  EXPECT_EQ(Copy(shard->Values().As<float>()), Copy(std::span(table).subspan(500, 100)));
  EXPECT_EQ(shard->first_element(), 500);
  EXPECT_EQ(shard->element_count(), 100);
  EXPECT_EQ(shard->version(), 0);
  EXPECT_EQ(shard->samples(), 0);
}

TEST_F(DenseShardTest, AppliesTheMeanGradientAtTheRateOfItsSamples) {
  const auto shard = Open({.element_count = 2,
                           .optimizer = {.kind = OptimizerKind::kSgd},
                           .learning_rate = {.base_rate = 1, .warmup_samples = 16}},
                          memory_);
  const std::vector<float> gradient_sum = {8, -16};
  ASSERT_TRUE(shard->Apply(gradient_sum, 8).ok());  // rate 8/16, gradient {1, -2}
  EXPECT_EQ(Copy(shard->Values().As<float>()), (std::vector<float>{-0.5, 1}));
  ASSERT_TRUE(shard->Apply(gradient_sum, 16).ok());  // rate 1, gradient {0.5, -1}
  EXPECT_EQ(Copy(shard->Values().As<float>()), (std::vector<float>{-1, 2}));
  EXPECT_EQ(shard->version(), 2);
  EXPECT_EQ(shard->samples(), 24);
}

TEST_F(DenseShardTest, AnAdjustmentChangesRateAndMomentumOfOneUpdate) {
  const auto shard = Open({.element_count = 1,
                           .optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5},
                           .learning_rate = {.base_rate = 1}},
                          memory_);
  const std::vector<float> gradient = {4};
  ASSERT_TRUE(shard->Apply(gradient, 1, {.rate_factor = 0.25}).ok());
  EXPECT_EQ(Copy(shard->Values().As<float>()), (std::vector<float>{-1}));
  ASSERT_TRUE(shard->Apply(gradient, 1, {.momentum = 0.25}).ok());  // velocity 5
  EXPECT_EQ(Copy(shard->Values().As<float>()), (std::vector<float>{-6}));
  ASSERT_TRUE(shard->Apply(gradient, 1).ok());  // velocity 6.5
  EXPECT_EQ(Copy(shard->Values().As<float>()), (std::vector<float>{-12.5}));
}

TEST_F(DenseShardTest, AHeldHandleNeverChanges) {
  const auto shard = Open(kConfig, memory_);
  std::vector<Buffer> held;
  std::vector<std::vector<float>> seen;
  Random random(9);
  for (int update = 0; update < 200; ++update) {
    // Of the values and of both slots.
    for (int array = 0; array < 3; ++array) {
      if (!random.Chance(0.3)) continue;
      held.push_back(array == 0 ? shard->Values() : shard->Slot(array - 1));
      seen.push_back(Copy(held.back().As<float>()));
    }
    while (!held.empty() && random.Chance(0.5)) {
      const size_t dropped = random.Below(held.size());
      held.erase(held.begin() + dropped);
      seen.erase(seen.begin() + dropped);
    }
    ASSERT_TRUE(shard->Apply(RandomGradient(update, 100), 10).ok());
    for (size_t i = 0; i < held.size(); ++i) {
      ASSERT_EQ(std::memcmp(held[i].data(), seen[i].data(), held[i].size()), 0) << update;
    }
  }
}

TEST_F(DenseShardTest, ReadersDoNotChangeTheResult) {
  const auto alone = Open(kConfig, memory_);
  const auto read = Open(kConfig, memory_);
  for (int update = 0; update < 20; ++update) {
    // In turns of nothing, some arrays and all.
    const Buffer reader = update % 3 == 0 ? Buffer() : read->Values();
    const Buffer slot_reader = update % 4 == 0 ? Buffer() : read->Slot(update % 2);
    const Buffer other_slot_reader = update % 5 == 0 ? read->Slot(0) : Buffer();
    const std::vector<float> gradient = RandomGradient(update, 100);
    ASSERT_TRUE(alone->Apply(gradient, 10).ok());
    ASSERT_TRUE(read->Apply(gradient, 10).ok());
    const Buffer expected = alone->Values();
    ASSERT_EQ(std::memcmp(read->Values().data(), expected.data(), expected.size()), 0) << update;
    for (size_t slot = 0; slot < 2; ++slot) {
      const Buffer state = alone->Slot(slot);
      ASSERT_EQ(std::memcmp(read->Slot(slot).data(), state.data(), state.size()), 0) << update;
    }
  }
}

TEST_F(DenseShardTest, WritesInPlaceWhenNobodyReads) {
  const auto shard = Open(kConfig, memory_);
  const uint8_t* const memory = shard->Values().data();
  const uint8_t* const slot = shard->Slot(1).data();
  ASSERT_TRUE(shard->Apply(RandomGradient(1, 100), 10).ok());
  EXPECT_EQ(shard->Values().data(), memory);
  EXPECT_EQ(shard->Slot(1).data(), slot);
}

TEST_F(DenseShardTest, WritesElsewhereOnlyWhatSomebodyReads) {
  const auto shard = Open(kConfig, memory_);
  const uint8_t* const memory = shard->Values().data();
  const uint8_t* const other_slot = shard->Slot(1).data();
  const Buffer reader = shard->Slot(0);
  ASSERT_TRUE(shard->Apply(RandomGradient(1, 100), 10).ok());
  EXPECT_EQ(shard->Values().data(), memory);
  EXPECT_NE(shard->Slot(0).data(), reader.data());
  EXPECT_EQ(shard->Slot(1).data(), other_slot);
}

TEST_F(DenseShardTest, ContinuesFromContentThatOthersRead) {
  const auto first = Open(kConfig, memory_);
  ASSERT_TRUE(first->Apply(RandomGradient(1, 100), 10).ok());
  const auto second = Open(kConfig, memory_);
  second->Restore(first->Values(), {first->Slot(0), first->Slot(1)}, first->version(),
                  first->samples());
  ASSERT_TRUE(second->Apply(RandomGradient(2, 100), 10).ok());
  ASSERT_TRUE(first->Apply(RandomGradient(2, 100), 10).ok());
  EXPECT_EQ(Copy(second->Values().As<float>()), Copy(first->Values().As<float>()));
  EXPECT_EQ(Copy(second->Slot(1).As<float>()), Copy(first->Slot(1).As<float>()));
}

TEST_F(DenseShardTest, AlternatesBetweenTwoBuffersUnderOneReader) {
  DenseShardConfig config = kConfig;
  config.element_count = 100'000;
  const auto shard = Open(config, memory_);
  const std::vector<float> gradient = RandomGradient(1, config.element_count);
  Buffer reader = shard->Values();
  const uint8_t* const first = reader.data();
  ASSERT_TRUE(shard->Apply(gradient, 10).ok());
  const uint8_t* const second = shard->Values().data();
  EXPECT_NE(second, first);
  for (int update = 0; update < 10; ++update) {
    reader = shard->Values();
    ASSERT_TRUE(shard->Apply(gradient, 10).ok());
    EXPECT_EQ(shard->Values().data(), update % 2 == 0 ? first : second);
  }
}

TEST_F(DenseShardTest, ShardsTogetherGiveTheBitsOfTheWhole) {
  const auto whole = Open(kConfig, memory_);
  DenseShardConfig left_config = kConfig, right_config = kConfig;
  left_config.element_count = 37;
  right_config.first_element = 537;
  right_config.element_count = 63;
  const auto left = Open(left_config, memory_);
  const auto right = Open(right_config, memory_);
  for (int update = 0; update < 20; ++update) {
    const std::vector<float> gradient = RandomGradient(update, 100);
    ASSERT_TRUE(whole->Apply(gradient, 10).ok());
    ASSERT_TRUE(left->Apply(std::span(gradient).first(37), 10).ok());
    ASSERT_TRUE(right->Apply(std::span(gradient).subspan(37), 10).ok());
  }
  std::vector<float> together = Copy(left->Values().As<float>());
  const std::vector<float> rest = Copy(right->Values().As<float>());
  together.insert(together.end(), rest.begin(), rest.end());
  EXPECT_EQ(together, Copy(whole->Values().As<float>()));
}

TEST_F(DenseShardTest, RefusedUpdatesChangeNothing) {
  const auto shard = Open(kConfig, memory_);
  ASSERT_TRUE(shard->Apply(RandomGradient(1, 100), 10).ok());
  const std::vector<float> before = Copy(shard->Values().As<float>());
  const auto message = [&](size_t elements, uint64_t samples) {
    const absl::Status status = shard->Apply(RandomGradient(2, elements), samples);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message(99, 1),
            "apply: the gradient has 99 elements, the shard has 100; push the shard's own element "
            "range");
  EXPECT_EQ(message(100, 0),
            "apply: the gradient stands for 0 samples, after 10 so far; push the number of "
            "training examples in the sum");
  message(100, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Copy(shard->Values().As<float>()), before);
  EXPECT_EQ(shard->version(), 1);
  EXPECT_EQ(shard->samples(), 10);
}

TEST_F(DenseShardTest, RefusesAConfigThatMakesNoSense) {
  const auto code = [&](const DenseShardConfig& config) {
    return DenseShard::Create(config, memory_).status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code({}), kInvalid);
  EXPECT_EQ(code({.first_element = UINT64_MAX, .element_count = 2}), kInvalid);
  EXPECT_EQ(code({.element_count = UINT64_MAX}), kInvalid);
  EXPECT_EQ(code({.element_count = 1, .optimizer = {.momentum = 2}}), kInvalid);
  EXPECT_EQ(code({.element_count = 1, .learning_rate = {.base_rate = -1}}), kInvalid);
  EXPECT_EQ(code({.element_count = 1, .initializer = {.kind = InitializerKind::kUniform}}),
            kInvalid);
}

}  // namespace
}  // namespace covey::server
