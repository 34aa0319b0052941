// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/update_batch.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/base/crc32c.h"
#include "gtest/gtest.h"
#include "server/replication/shard_record.h"

namespace covey::server {
namespace {

constexpr size_t kElements = 5;

EncodedGradient ArrayOf(float value) {
  const std::vector<float> values(kElements, value);
  return {.frame = Buffer::CopyOf(
              {reinterpret_cast<const uint8_t*>(values.data()), kElements * sizeof(float)}),
          .checksum = {}};
}

// Initial values with the state of two slots, a cut, an update, and one by functions.
std::vector<ShardRecord> Records() {
  std::vector<ShardRecord> records;
  records.push_back(InitialValuesRecord(
      ArrayOf(1), InitialState{.slots = {ArrayOf(2), ArrayOf(3)}, .updates = 7, .samples = 70}));
  records.push_back(CutRecord(4, Epoch(9)));
  ShardRecord& update = records.emplace_back();
  update.version = Version(8);
  update.samples = 2;
  update.gradient = ArrayOf(4);
  ShardRecord& by_functions = records.emplace_back();
  by_functions.version = Version(9);
  // As large as they may be.
  by_functions.functions.assign(256, {.kind = VectorFunction::Kind::kAxpy,
                                      .target = ~uint32_t{0},
                                      .source = ~uint32_t{0},
                                      .scalar = 0.1});
  for (size_t i = 0; i < records.size(); ++i) records[i].index = 11 + i;
  return records;
}

TEST(UpdateBatch, RecordsAreReadAsTheyWereAdded) {
  UpdateBatch batch;
  uint64_t most = 0;
  for (ShardRecord& record : Records()) {
    most += UpdateBatch::BytesOf(record);
    batch.Add(record);
  }
  EXPECT_EQ(batch.first(), 11u);
  EXPECT_LE(batch.bytes(), most);
  const uint64_t bytes = batch.bytes();
  const uint32_t checksum = batch.checksum();
  std::vector<uint8_t> payload;
  for (const Buffer& part : batch.Take()) {
    payload.insert(payload.end(), part.bytes().begin(), part.bytes().end());
  }
  EXPECT_EQ(payload.size(), bytes);
  EXPECT_EQ(Crc32c(payload), checksum);

  std::vector<ShardRecord> read;
  const absl::Status status =
      ForEachUpdate(Buffer::CopyOf(payload), {.elements = kElements}, [&](ShardRecord record) {
        read.push_back(std::move(record));
        return absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[3].functions, Records()[3].functions);
  EXPECT_EQ(read[3].version, Version(9));
  ASSERT_TRUE(read[0].initial_state);
  EXPECT_EQ(read[0].gradient.frame.As<float>()[4], 1);
  ASSERT_EQ(read[0].initial_state->slots.size(), 2u);
  EXPECT_EQ(read[0].initial_state->slots[0].frame.As<float>()[4], 2);
  EXPECT_EQ(read[0].initial_state->slots[1].frame.As<float>()[0], 3);
  EXPECT_EQ(read[0].initial_state->updates, 7u);
  EXPECT_EQ(read[0].initial_state->samples, 70u);
  EXPECT_EQ(read[1].cut, 4u);
  EXPECT_EQ(read[2].version, Version(8));
  EXPECT_EQ(read[2].gradient.frame.As<float>()[0], 4);
}

TEST(UpdateBatch, FactorsAreReadAsTheyWereAdded) {
  // Of 12 elements in three rows, the first of which begins before the shard.
  const GradientShape shape{.elements = 12,
                            .matrix = {.first_element = 3, .elements = 12, .columns = 5}};
  const std::vector<float> factors = {1, 2, 3, 4, 5, 6, 7, 8};
  ShardRecord record;
  record.index = 1;
  record.version = Version(1);
  record.samples = 1;
  record.gradient.terms = 1;
  record.gradient.frame = Buffer::CopyOf(
      {reinterpret_cast<const uint8_t*>(factors.data()), factors.size() * sizeof(float)});
  const uint64_t most = UpdateBatch::BytesOf(record);
  UpdateBatch batch;
  batch.Add(record);
  EXPECT_LE(batch.bytes(), most);
  std::vector<uint8_t> payload;
  for (const Buffer& part : batch.Take()) {
    payload.insert(payload.end(), part.bytes().begin(), part.bytes().end());
  }
  BufferPool spares(0);
  std::vector<float> read;
  const auto take = [&](ShardRecord logged) {
    const Buffer elements = DecodedElements(logged.gradient, shape, spares);
    read.assign(elements.As<float>().begin(), elements.As<float>().end());
    return absl::OkStatus();
  };
  const absl::Status status = ForEachUpdate(Buffer::CopyOf(payload), shape, take);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(read, (std::vector<float>{7, 8, 8, 10, 12, 14, 16, 12, 15, 18, 21, 24}));
  // Of a table that is no matrix, nobody has logged factors.
  EXPECT_EQ(ForEachUpdate(Buffer::CopyOf(payload), {.elements = 12}, take).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace covey::server
