// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/table/key_slots.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replication/shard_content.h"
#include "server/table/host_memory.h"
#include "server/table/row_memory.h"

namespace covey::server {
namespace {

// A machine that has no memory for arrays or chunks of rows from some size on.
class ScarceRows final : public RowMemory {
 public:
  Buffer NewChunk(size_t bytes) override {
    if (bytes > 4096) throw std::bad_alloc();
    return Buffer::Allocate(bytes);
  }
};

class ScarceMemory final : public TableMemory {
 public:
  RowMemory& rows() override { return rows_; }
  Buffer NewArray(size_t bytes) override {
    if (bytes > 64) throw std::bad_alloc();
    return host_.NewArray(bytes);
  }
  absl::StatusOr<std::unique_ptr<ShardMemory>> Hold(const OptimizerConfig& optimizer,
                                                    Buffer values) override {
    return host_.Hold(optimizer, std::move(values));
  }

 private:
  BufferPool spares_{1 << 20};
  HostMemory host_{spares_};
  ScarceRows rows_;
};

TEST(ShardContentMemory, AShardWithoutMemoryFailsAlone) {
  ScarceMemory memory;
  const absl::Time now = absl::UnixEpoch();
  const auto failed = ShardContent::Create(now, DenseShardConfig{.element_count = 17}, memory);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(failed.status().message()), testing::HasSubstr("68 bytes"));
  EXPECT_TRUE(ShardContent::Create(now, DenseShardConfig{.element_count = 16}, memory).ok());
}

TEST(ShardContentMemory, AShardWithoutMemoryForItsRowsFailsAlone) {
  ScarceMemory memory;
  const absl::Time now = absl::UnixEpoch();
  const auto content =
      ShardContent::Create(now, SparseShardConfig{.slot_count = kKeySlots, .width = 4}, memory);
  ASSERT_TRUE(content.ok()) << content.status();
  std::vector<uint64_t> keys(1000);
  std::iota(keys.begin(), keys.end(), 1);
  const std::vector<float> rows(4 * keys.size(), 1);
  ShardRecord record;
  record.index = 1;
  record.version = Version(1);
  record.samples = 1;
  const absl::Status status = (*content)->Apply(now, record, Gradient(rows, keys));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no memory for new rows"));
}

// A table of ten shards with a million rows each, to which sixteen groups push.
TEST(ShardContentMemory, ClocksFollowShardsAndNotKeys) {
  constexpr uint32_t kShards = 10;
  constexpr uint64_t kKeys = 1'000'000;
  constexpr uint32_t kGroups = 16;
  BufferPool spares(1 << 20);
  HostMemory memory(spares);
  std::vector<uint64_t> keys(kKeys);
  const std::vector<float> rows(kKeys, 1);
  std::vector<std::unique_ptr<ShardContent>> contents;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    auto content = ShardContent::Create(
        absl::UnixEpoch(), SparseShardConfig{.slot_count = kKeySlots, .width = 1}, memory);
    ASSERT_TRUE(content.ok()) << content.status();
    std::iota(keys.begin(), keys.end(), shard * kKeys);
    ShardRecord record;
    record.index = 1;
    record.version = Version(1);
    record.samples = kGroups;
    for (uint32_t group = 1; group <= kGroups; ++group) {
      record.pushes.push_back({.key = {.producer = {.kind = Producer::Kind::kGroup, .id = group},
                                       .incarnation = 1,
                                       .sequence = 1},
                               .group = GroupId(group),
                               .step = Step(1000 + group)});
    }
    const absl::Status applied = (*content)->Apply(absl::UnixEpoch(), record, Gradient(rows, keys));
    ASSERT_TRUE(applied.ok()) << applied;
    ASSERT_EQ((*content)->sparse()->rows(), kKeys);
    contents.push_back(*std::move(content));
  }

  const size_t before = mallinfo2().uordblks;
  std::vector<ClockVector> clocks;
  clocks.reserve(kShards);
  for (const auto& content : contents) clocks.push_back(content->clocks());
  EXPECT_LT(mallinfo2().uordblks - before, 10'000u) << "in memory";
  size_t described = 0;
  for (const ClockVector& vector : clocks) {
    EXPECT_EQ(vector.StepOf(GroupId(kGroups)), Step(1000 + kGroups));
    proto::ShardState state;
    vector.Describe(Version(1), state);
    EXPECT_EQ(state.clocks_size(), static_cast<int>(kGroups));
    described += state.ByteSizeLong();
  }
  EXPECT_LT(described, 10'000u) << "in a description";
}

TEST(ShardContentMemory, SaysWhatItTakes) {
  BufferPool spares(1 << 20);
  HostMemory memory(spares);
  DenseShardConfig config{.element_count = 16};
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    config.optimizer.kind = kind;
    const auto content = ShardContent::Create(absl::UnixEpoch(), config, memory);
    ASSERT_TRUE(content.ok()) << content.status();
    EXPECT_EQ((*content)->memory_bytes(), (1 + (*content)->slots()) * 64);
    EXPECT_EQ(ShardContent::MemoryBytesOf(config).value(), (*content)->memory_bytes());
  }
}

}  // namespace
}  // namespace covey::server
