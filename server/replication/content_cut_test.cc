// SPDX-License-Identifier: Apache-2.0
#include "server/replication/content_cut.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/base/crc32c.h"
#include "common/cluster/ids.h"
#include "common/optimizer/optimizer.h"
#include "gtest/gtest.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"
#include "server/table/device_memory.h"
#include "server/table/host_memory.h"
#include "server/table/table_memory.h"
#include "server/table/testing/sim_device.h"

namespace covey::server {
namespace {

constexpr uint64_t kElements = 100;

std::unique_ptr<ShardContent> Fresh(TableMemory& memory, OptimizerKind kind) {
  return *ShardContent::Create(
      absl::UnixEpoch(),
      DenseShardConfig{.element_count = kElements, .optimizer = {.kind = kind, .delay = 3}},
      memory);
}

// The push of a group's step: an update, or discarded.
void Advance(ShardContent& content, uint64_t step, bool discarded = false) {
  ShardRecord record{.index = content.index() + 1,
                     .version = discarded ? Version() : content.version().Next(),
                     .pushes = {{.key = {.producer = {.kind = Producer::Kind::kGroup, .id = 3},
                                         .incarnation = 2,
                                         .sequence = step},
                                 .group = GroupId(3),
                                 .step = Step(step),
                                 .discarded = discarded}},
                     .samples = 4,
                     .adjustment = {},
                     .gradient = {},
                     .digest = {}};
  const std::vector<float> gradient(discarded ? 0 : kElements, 0.1f * static_cast<float>(step));
  ASSERT_TRUE(content.Apply(absl::UnixEpoch(), record, std::span<const float>(gradient)).ok());
}

void ApplyCut(ShardContent& content, uint64_t snapshot) {
  ShardRecord record = CutRecord(snapshot, Epoch(3));
  record.index = content.index() + 1;
  ASSERT_TRUE(content.Apply(absl::UnixEpoch(), record, {}).ok());
}

std::string BytesOf(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

class ContentCutTest : public testing::Test {
 protected:
  BufferPool spares_{1 << 20};
  HostMemory host_{spares_};
  SimDevice device_;
  DeviceMemory on_device_{device_, spares_};
};

TEST_F(ContentCutTest, IsTakenWithoutACopy) {
  const auto content = Fresh(host_, OptimizerKind::kAdam);
  Advance(*content, 1);
  const ContentCut cut = content->Cut();
  EXPECT_EQ(cut.values.data(), content->Values().data());
  ASSERT_EQ(cut.slots.size(), 2u);
  EXPECT_EQ(cut.slots[0].data(), content->Slot(0).data());
  EXPECT_EQ(cut.slots[1].data(), content->Slot(1).data());
}

TEST_F(ContentCutTest, StaysAsOfItsRecord) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kLamb,
                                   OptimizerKind::kDelayedNesterov}) {
    SCOPED_TRACE(OptimizerName(kind));
    const auto content = Fresh(host_, kind);
    for (uint64_t step = 1; step <= 4; ++step) Advance(*content, step);
    Advance(*content, 5, /*discarded=*/true);
    ApplyCut(*content, 17);
    const uint64_t digest = content->Digest();
    const ContentCut cut = content->Cut();
    std::vector<std::string> bytes = {BytesOf(cut.values)};
    for (const Buffer& slot : cut.slots) bytes.push_back(BytesOf(slot));
    for (uint64_t step = 6; step <= 12; ++step) Advance(*content, step);

    EXPECT_EQ(cut.index, 6u);
    EXPECT_EQ(cut.version, Version(4));
    EXPECT_EQ(cut.samples, 16u);
    EXPECT_EQ(cut.discarded, 1u);
    EXPECT_EQ(cut.last_cut, 17u);
    EXPECT_EQ(cut.clocks.StepOf(GroupId(3)), Step(5));
    EXPECT_EQ(BytesOf(cut.values), bytes[0]);
    for (size_t i = 0; i < cut.slots.size(); ++i) EXPECT_EQ(BytesOf(cut.slots[i]), bytes[1 + i]);
    EXPECT_EQ(cut.Digest(), digest);
    EXPECT_NE(content->Digest(), digest);
  }
}

TEST_F(ContentCutTest, OutlivesItsShard) {
  auto content = Fresh(host_, OptimizerKind::kAdam);
  Advance(*content, 1);
  const uint64_t digest = content->Digest();
  const ContentCut cut = content->Cut();
  content.reset();
  EXPECT_EQ(cut.Digest(), digest);
}

TEST_F(ContentCutTest, ChangesNoBitOfTheUpdatesAfterIt) {
  const auto alone = Fresh(host_, OptimizerKind::kAdam);
  const auto cut_often = Fresh(host_, OptimizerKind::kAdam);
  std::vector<ContentCut> cuts;
  for (uint64_t step = 1; step <= 20; ++step) {
    cuts.push_back(cut_often->Cut());
    if (step % 3 == 0) cuts.erase(cuts.begin(), cuts.end() - 1);
    Advance(*alone, step);
    Advance(*cut_often, step);
    ASSERT_EQ(cut_often->Digest(), alone->Digest()) << step;
  }
}

TEST_F(ContentCutTest, OfADeviceIsThatOfTheHost) {
  const auto content = Fresh(on_device_, OptimizerKind::kAdam);
  const auto on_host = Fresh(host_, OptimizerKind::kAdam);
  for (uint64_t step = 1; step <= 3; ++step) {
    Advance(*content, step);
    Advance(*on_host, step);
  }
  const ContentCut cut = content->Cut();
  const uint64_t digest = on_host->Digest();
  for (uint64_t step = 4; step <= 6; ++step) Advance(*content, step);
  content->Cut();
  EXPECT_EQ(cut.Digest(), digest);
}

TEST_F(ContentCutTest, EachPartIsInTheDigest) {
  const auto content = Fresh(host_, OptimizerKind::kAdam);
  Advance(*content, 1);
  const ContentCut cut = content->Cut();
  const auto other = Fresh(host_, OptimizerKind::kAdam);
  for (uint64_t step = 1; step <= 2; ++step) Advance(*other, step);
  const ContentCut after = other->Cut();

  std::vector<ContentCut> changed(13, cut);
  changed[1].index = after.index;
  changed[2].version = after.version;
  changed[3].samples = after.samples;
  changed[4].discarded = 1;
  changed[5].last_cut = 1;
  changed[6].values = after.values;
  changed[7].slots[1] = after.slots[1];
  changed[8].clocks = after.clocks;
  changed[9].push_history = after.push_history;
  changed[10].asynchrony.staleness = 1;
  changed[11].asynchrony.pushes = 1;
  changed[12].asynchrony.updates_above_target = 1;
  std::set<uint64_t> digests;
  for (const ContentCut& one : changed) digests.insert(one.Digest());
  EXPECT_EQ(digests.size(), changed.size());
}

TEST_F(ContentCutTest, DigestFollowsFromTheChecksumsOfItsArrays) {
  const auto content = Fresh(host_, OptimizerKind::kAdam);
  Advance(*content, 1);
  const ContentCut cut = content->Cut();
  const std::vector<uint64_t> checksums = {Crc32c(cut.values.bytes()), Crc32c(cut.slots[0].bytes()),
                                           Crc32c(cut.slots[1].bytes())};
  EXPECT_EQ(cut.Digest(checksums), content->Digest());
  EXPECT_DEATH(cut.Digest(std::vector<uint64_t>(2)), "parts.size");
}

}  // namespace
}  // namespace covey::server
