// SPDX-License-Identifier: Apache-2.0

// Shards on a simulated device against shards in host memory.

#include "server/table/device_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "server/table/dense_shard.h"
#include "server/table/host_memory.h"
#include "server/table/table_memory.h"
#include "server/table/testing/sim_device.h"

namespace covey::server {
namespace {

constexpr size_t kElements = 101;

DenseShardConfig ConfigOf(OptimizerKind kind, size_t elements = kElements) {
  return {.first_element = 500,
          .element_count = elements,
          .initializer = {.kind = InitializerKind::kNormal, .a = 0, .b = 1, .seed = 3},
          .optimizer = {.kind = kind, .weight_decay = 0.01, .delay = 3, .vectors = 3},
          .learning_rate = {.base_rate = 0.1, .warmup_samples = 100}};
}

std::vector<float> RandomGradient(Random& random, size_t count = kElements) {
  std::vector<float> gradient(count);
  for (float& x : gradient) x = static_cast<float>(random.Uniform() * 2 - 1);
  return gradient;
}

std::vector<float> Copy(const Buffer& buffer) {
  const std::span<const float> elements = buffer.As<float>();
  return {elements.begin(), elements.end()};
}

bool SameBytes(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

class DeviceMemoryTest : public testing::Test {
 protected:
  std::unique_ptr<DenseShard> Open(TableMemory& memory, OptimizerKind kind) {
    return DenseShard::Create(ConfigOf(kind), memory).value();
  }

  BufferPool spares_{1 << 20};
  BufferPool host_spares_{1 << 20};
  SimDevice device_;
  DeviceMemory memory_{device_, spares_};
  HostMemory host_{host_spares_};
};

class EachKindTest : public DeviceMemoryTest, public testing::WithParamInterface<OptimizerKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, EachKindTest,
                         testing::Values(OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                         OptimizerKind::kNesterov, OptimizerKind::kAdagrad,
                                         OptimizerKind::kAdam, OptimizerKind::kAdamW,
                                         OptimizerKind::kDelayedNesterov, OptimizerKind::kVectors),
                         [](const auto& info) { return std::string(OptimizerName(info.param)); });

TEST_P(EachKindTest, HoldsTheBitsOfHostMemoryAfterEachUpdate) {
  const auto on_device = Open(memory_, GetParam()), on_host = Open(host_, GetParam());
  ASSERT_EQ(on_device->slots(), on_host->slots());
  Random random(5);
  for (int update = 0; update < 7; ++update) {
    ASSERT_TRUE(SameBytes(on_device->Values(), on_host->Values())) << update;
    for (size_t slot = 0; slot < on_host->slots(); ++slot) {
      ASSERT_TRUE(SameBytes(on_device->Slot(slot), on_host->Slot(slot))) << update;
    }
    const std::vector<float> gradient = RandomGradient(random);
    ASSERT_TRUE(on_device->Apply(gradient, 4).ok());
    ASSERT_TRUE(on_host->Apply(gradient, 4).ok());
  }
}

TEST_F(DeviceMemoryTest, FunctionsAndAnswersAreThoseOfHostMemory) {
  const auto on_device = Open(memory_, OptimizerKind::kVectors);
  const auto on_host = Open(host_, OptimizerKind::kVectors);
  Random random(5);
  const std::vector<VectorFunction> functions = {
      {.kind = VectorFunction::Kind::kCopy, .target = 2, .source = 1},
      {.kind = VectorFunction::Kind::kAxpy, .target = 0, .source = 2, .scalar = 0.3},
      {.kind = VectorFunction::Kind::kScale, .target = 2, .scalar = -1.7},
      {.kind = VectorFunction::Kind::kSet, .target = 3, .scalar = 0.1}};
  const std::vector<VectorQuery> queries = {
      {.kind = VectorQuery::Kind::kDot, .vector = 0, .other = 2},
      {.kind = VectorQuery::Kind::kTop, .vector = 1, .count = 5}};
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> gradient = RandomGradient(random);
    ASSERT_TRUE(on_device->Apply(gradient, 4).ok());
    ASSERT_TRUE(on_host->Apply(gradient, 4).ok());
    const Buffer before = on_host->Values();
    const std::vector<float> old_values = Copy(before);
    ASSERT_TRUE(on_device->Apply(functions).ok());
    ASSERT_TRUE(on_host->Apply(functions).ok());
    // A reader keeps what it has.
    EXPECT_EQ(Copy(before), old_values);
    EXPECT_FALSE(SameBytes(before, on_host->Values()));
    EXPECT_TRUE(SameBytes(on_device->Values(), on_host->Values()));
    for (size_t slot = 0; slot < 3; ++slot) {
      EXPECT_TRUE(SameBytes(on_device->Slot(slot), on_host->Slot(slot))) << slot;
    }
    EXPECT_EQ(on_device->Answer(queries), on_host->Answer(queries));
  }
  EXPECT_EQ(on_host->version(), 6u);
  EXPECT_EQ(on_host->samples(), 12u);
}

// As a joining replica does, in both directions.
TEST_P(EachKindTest, ContinuesFromTheContentOfHostMemoryAndBack) {
  const auto first = Open(host_, GetParam());
  Random random(6);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(first->Apply(RandomGradient(random), 4).ok());
  const auto take_over = [](const DenseShard& from, DenseShard& to) {
    std::vector<Buffer> slots;
    for (size_t slot = 0; slot < from.slots(); ++slot) {
      slots.push_back(Buffer::CopyOf(from.Slot(slot).bytes()));
    }
    to.Restore(Buffer::CopyOf(from.Values().bytes()), std::move(slots), from.version(),
               from.samples());
  };
  const auto second = Open(memory_, GetParam());
  second->Values();  // a copy of what will be replaced
  take_over(*first, *second);
  ASSERT_TRUE(SameBytes(second->Values(), first->Values()));
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> gradient = RandomGradient(random);
    ASSERT_TRUE(first->Apply(gradient, 2).ok());
    ASSERT_TRUE(second->Apply(gradient, 2).ok());
  }
  const auto third = Open(host_, GetParam());
  take_over(*second, *third);
  const std::vector<float> gradient = RandomGradient(random);
  ASSERT_TRUE(first->Apply(gradient, 2).ok());
  ASSERT_TRUE(third->Apply(gradient, 2).ok());
  EXPECT_TRUE(SameBytes(third->Values(), first->Values()));
}

TEST_F(DeviceMemoryTest, CopiesTheValuesOutOncePerVersionThatIsRead) {
  const auto shard = Open(memory_, OptimizerKind::kAdam);
  EXPECT_EQ(device_.copies_out(), 0);
  for (int i = 0; i < 3; ++i) shard->Values();
  EXPECT_EQ(device_.copies_out(), 1);
  Random random(7);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(shard->Apply(RandomGradient(random), 1).ok());
  EXPECT_EQ(device_.copies_out(), 1);
  for (int i = 0; i < 3; ++i) shard->Values();
  EXPECT_EQ(device_.copies_out(), 2);
}

TEST_F(DeviceMemoryTest, ReadersKeepTheValuesThatTheyWereGiven) {
  const auto shard = Open(memory_, OptimizerKind::kSgd);
  const Buffer old = shard->Values();
  const std::vector<float> before = Copy(old);
  Random random(8);
  ASSERT_TRUE(shard->Apply(RandomGradient(random), 1).ok());
  EXPECT_NE(Copy(shard->Values()), before);
  EXPECT_EQ(Copy(old), before);
}

TEST_F(DeviceMemoryTest, ReadersKeepTheSlotsThatTheyWereGiven) {
  const auto shard = Open(memory_, OptimizerKind::kMomentum);
  Random random(8);
  ASSERT_TRUE(shard->Apply(RandomGradient(random), 1).ok());
  const Buffer old = shard->Slot(0);
  const std::vector<float> before = Copy(old);
  ASSERT_TRUE(shard->Apply(RandomGradient(random), 1).ok());
  EXPECT_NE(Copy(shard->Slot(0)), before);
  EXPECT_EQ(Copy(old), before);
}

TEST_F(DeviceMemoryTest, AGradientMayChangeAfterTheCall) {
  const auto on_device = Open(memory_, OptimizerKind::kSgd),
             on_host = Open(host_, OptimizerKind::kSgd);
  Random random(9);
  std::vector<float> gradient = RandomGradient(random);
  ASSERT_TRUE(on_host->Apply(gradient, 1).ok());
  ASSERT_TRUE(on_device->Apply(gradient, 1).ok());
  gradient.assign(kElements, 1e9f);
  EXPECT_TRUE(SameBytes(on_device->Values(), on_host->Values()));
}

TEST_F(DeviceMemoryTest, ShardsOfSeveralSizesShareTheRoomForAGradient) {
  Random random(10);
  std::vector<std::unique_ptr<DenseShard>> shards, expected;
  for (const size_t elements : {size_t{7}, size_t{300}, size_t{1}}) {
    const DenseShardConfig config = ConfigOf(OptimizerKind::kMomentum, elements);
    shards.push_back(DenseShard::Create(config, memory_).value());
    expected.push_back(DenseShard::Create(config, host_).value());
  }
  EXPECT_EQ(device_.bytes(), sizeof(float) * (2 * (7 + 300 + 1) + 300));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::vector<float> gradient = RandomGradient(random, shards[i]->element_count());
      ASSERT_TRUE(shards[i]->Apply(gradient, 1).ok());
      ASSERT_TRUE(expected[i]->Apply(gradient, 1).ok());
    }
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    EXPECT_TRUE(SameBytes(shards[i]->Values(), expected[i]->Values())) << i;
  }
}

TEST_F(DeviceMemoryTest, AFullDeviceRefusesAShardAndKeepsTheOthers) {
  SimDevice small({.bytes_max = 4 * kElements * sizeof(float)});
  DeviceMemory memory(small, spares_);
  const auto held = Open(memory, OptimizerKind::kSgd);  // and room for a gradient
  const size_t bytes = small.bytes();
  const absl::Status full = DenseShard::Create(ConfigOf(OptimizerKind::kAdam), memory).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(small.bytes(), bytes);
  Random random(11);
  EXPECT_TRUE(held->Apply(RandomGradient(random), 1).ok());
  EXPECT_TRUE(DenseShard::Create(ConfigOf(OptimizerKind::kMomentum), memory).ok());
}

TEST_F(DeviceMemoryTest, AnOptimizerWithoutAKernelIsRefusedByName) {
  for (const OptimizerKind kind : {OptimizerKind::kLars, OptimizerKind::kLamb}) {
    const absl::Status refused = DenseShard::Create(ConfigOf(kind), memory_).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find(OptimizerName(kind)), std::string::npos) << refused;
  }
  EXPECT_EQ(device_.bytes(), 0);
}

using DeviceMemoryDeathTest = DeviceMemoryTest;

TEST_F(DeviceMemoryDeathTest, TheProcessorHasNoAccessToTheArraysOfTheDevice) {
  const auto array = device_.Allocate(4).value();
  EXPECT_DEATH(
      {
        volatile float* const element = array->elements().data();
        *element = 1;
      },
      "");
  std::vector<float> host(4);
  EXPECT_DEATH(device_.CopyIn(host, host), "IsOnDevice");
}

}  // namespace
}  // namespace covey::server
