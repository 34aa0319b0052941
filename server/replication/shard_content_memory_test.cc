// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <numeric>
#include <string>
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
