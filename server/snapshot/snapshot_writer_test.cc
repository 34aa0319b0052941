// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/snapshot_writer.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/limits.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/stored_piece.h"
#include "gmock/gmock.h"
#include "server/snapshot/snapshot_writer_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(SnapshotWriterTest, StoresExactlyTheContent) {
  AddShard();
  Order(1, 6);
  FollowView(6);
  const std::map<uint32_t, std::vector<Buffer>> arrays = {
      {0, {Filled(kReplicaPieceBytesMax + 400, 1), Filled(kReplicaPieceBytesMax + 400, 2)}},
      {1, {Filled(12, 3), Filled(12, 4)}}};
  Cut(kSecond, 1, 6, {.values = arrays.at(1)[0], .slots = {arrays.at(1)[1]}});
  AnswerAll();
  EXPECT_THAT(reports_, IsEmpty()) << "the first shard is missing";
  Cut(kShard, 1, 6, {.values = arrays.at(0)[0], .slots = {arrays.at(0)[1]}});
  AnswerAll();

  ASSERT_THAT(reports_, SizeIs(1));
  const proto::SnapshotReportRequest& report = reports_[0];
  EXPECT_EQ(report.snapshot(), 1u);
  EXPECT_EQ(report.failure(), "");
  ASSERT_EQ(report.files_size(), 1);
  EXPECT_EQ(report.files(0).name(), "part-2-1.cvp");
  EXPECT_EQ(report.files(0).bytes(), store_.BytesOf(kPath).size());
  ASSERT_EQ(report.shards_size(), 2);
  EXPECT_EQ(report.shards(0).shard(), 1u) << "in the order of the cuts";
  EXPECT_EQ(report.shards(1).pieces_size(), 5) << "two of values, two of the slot, the record";
  const auto header = store_.Read(kPath, 0, kPartBlockBytes);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(*DecodePartHeader(header->bytes()),
            (PartHeader{.job = view_.job(), .snapshot = 1, .epoch = 6}));
  for (const proto::SnapshotShard& shard : report.shards()) {
    EXPECT_EQ(shard.table(), 1u);
    EXPECT_EQ(shard.generation(), 1u);
    EXPECT_EQ(shard.index(), 7u);
    EXPECT_EQ(shard.version(), 5u);
    EXPECT_EQ(shard.samples(), 640u);
    EXPECT_EQ(shard.last_step(), 40u);
    std::vector<std::string> stored(2);
    for (const proto::SnapshotPiece& piece : shard.pieces()) {
      const StoredRange range = RangeOf(piece);
      const auto bytes = store_.Read(kPath, range.offset, range.bytes);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      const auto payload = PayloadOf(shard, piece, *bytes);
      ASSERT_TRUE(payload.ok()) << payload.status();
      if (piece.kind() == proto::ReplicaPiece::RECORD) continue;
      std::string& array = stored[piece.kind() == proto::ReplicaPiece::SLOT ? 1 : 0];
      EXPECT_EQ(piece.first() * sizeof(float), array.size());
      array += Text(*payload);
    }
    EXPECT_TRUE(stored[0] == Text(arrays.at(shard.shard())[0]));
    EXPECT_TRUE(stored[1] == Text(arrays.at(shard.shard())[1]));
  }
}

TEST_F(SnapshotWriterTest, ReportsWhenThePartIsDurable) {
  Order(1, 6);
  FollowView(6);
  Cut(1, 6);
  std::vector<Message> requests = TakeRequests();
  ASSERT_FALSE(requests.empty());
  ASSERT_TRUE(requests.back().envelope.store_request().has_sync());
  for (size_t i = 0; i + 1 < requests.size(); ++i) Answer(requests[i]);
  EXPECT_THAT(TakeRequests(), IsEmpty());
  EXPECT_THAT(reports_, IsEmpty());
  Answer(requests.back());
  EXPECT_THAT(TakeRequests(), IsEmpty());
  ASSERT_THAT(reports_, SizeIs(1));
  const size_t bytes = store_.BytesOf(kPath).size();
  store_.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
    EXPECT_TRUE(crashed.Read(kPath, 0, bytes).ok()) << state;
  });
}

TEST_F(SnapshotWriterTest, KeepsFewBytesInFlight) {
  Order(1, 6);
  FollowView(6);
  constexpr size_t kPieces = 6;
  Cut(kShard, 1, 6, {.values = Filled(kPieces * kReplicaPieceBytesMax, 1)});
  std::vector<Message> waiting = TakeRequests();
  size_t requests = waiting.size();
  while (!waiting.empty()) {
    uint64_t bytes = 0;
    for (const Message& message : waiting) bytes += BytesOfStoreRequest(message);
    EXPECT_LT(bytes, 3 * kReplicaPieceBytesMax);
    Answer(waiting.front());
    waiting.erase(waiting.begin());
    for (Message& message : TakeRequests()) {
      waiting.push_back(std::move(message));
      ++requests;
    }
  }
  EXPECT_EQ(requests, kPieces + 3) << "a header, the pieces and the record, a sync";
  EXPECT_THAT(reports_, SizeIs(1));
}

TEST_F(SnapshotWriterTest, StoresShardsFirstThatWereUpdatedMeanwhile) {
  constexpr uint32_t kShards = 12;
  for (uint32_t i = 1; i < kShards; ++i) AddShard();
  Order(1, 6);
  FollowView(6);
  const auto shard = [](uint32_t index) { return ShardId{TableId(1), ShardIndex(index)}; };
  for (uint32_t i = 0; i < kShards; ++i) {
    Cut(shard(i), 1, 6, {.values = Filled(kReplicaPieceBytesMax, 1)});
  }
  updated_ = {shard(7), shard(9)};
  AnswerAll();
  ASSERT_THAT(reports_, SizeIs(1));
  std::vector<uint32_t> stored;
  for (const proto::SnapshotShard& entry : reports_[0].shards()) stored.push_back(entry.shard());
  // After the first 16 MiB.
  EXPECT_THAT(stored, ElementsAre(0, 1, 2, 3, 7, 9, 4, 5, 6, 8, 10, 11));
}

TEST_F(SnapshotWriterTest, ReportsAStoreThatFailsOnce) {
  AddShard();
  Order(1, 6);
  FollowView(6);
  store_.PlanFault(4, MemoryFolder::Fault::kNoSpace);
  Cut(1, 6);
  AnswerAll();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].snapshot(), 1u);
  EXPECT_THAT(reports_[0].failure(), HasSubstr(kPath));
  EXPECT_THAT(reports_[0].failure(), HasSubstr("No space left"));
  EXPECT_TRUE(reports_[0].shards().empty());
  Cut(kSecond, 1, 6, {.values = Filled(4, 1)});
  EXPECT_EQ(Requests(), 0u) << "the order has failed";
  EXPECT_THAT(reports_, SizeIs(1));
}

TEST_F(SnapshotWriterTest, ReportsAFailedSync) {
  Order(1, 6);
  FollowView(6);
  Cut(1, 6);
  std::vector<Message> requests = TakeRequests();
  for (size_t i = 0; i + 1 < requests.size(); ++i) Answer(requests[i]);
  store_.PlanFault(store_.operations() + 1, MemoryFolder::Fault::kIoError);
  Answer(requests.back());
  AnswerAll();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_THAT(reports_[0].failure(), HasSubstr(kPath));
}

// Only the process that has opened a file can close it.
TEST_F(SnapshotWriterTest, AFailedPartLeavesNoFileOpen) {
  AddShard();
  for (uint64_t order = 1; order <= kStoreOpenFilesMax + 1; ++order) {
    Order(order, 5 + order);
    FollowView(5 + order);
    Cut(order, 5 + order);
    AnswerAll();
    writer_.Fail(kSecond, "a later push is in its content", outbox_);
    AnswerAll();
  }
  ASSERT_THAT(reports_, SizeIs(kStoreOpenFilesMax + 1));
  EXPECT_THAT(reports_.back().failure(), HasSubstr("a later push"));
}

// However fast orders fail, the store's queue is not filled.
TEST_F(SnapshotWriterTest, TheNextOrderWaitsUntilTheFilesOfTheLastAreRemoved) {
  Order(1, 6);
  FollowView(6);
  Cut(1, 6);
  const std::vector<Message> late = TakeRequests();
  Order(2, 7);
  FollowView(7);
  Cut(2, 7);
  const std::vector<Message> removals = TakeRequests();
  ASSERT_THAT(removals, SizeIs(1));
  for (const Message& request : late) Answer(request);
  EXPECT_EQ(Requests(), 0u);
  Answer(removals[0]);
  AnswerAll();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].snapshot(), 2u);
  EXPECT_EQ(reports_[0].failure(), "");
}

TEST_F(SnapshotWriterTest, ReportsAShardThatMakesNoCut) {
  Order(1, 6);
  FollowView(6);
  writer_.Fail(kShard, "a later push is in its content", outbox_);
  writer_.Fail(kShard, "a later push is in its content", outbox_);
  EXPECT_EQ(Requests(), 0u);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].failure(), "table 1 shard 0: a later push is in its content");
}

TEST_F(SnapshotWriterTest, ForgetsAWithdrawnOrderAndRemovesItsFile) {
  AddShard();
  Order(1, 6);
  FollowView(6);
  Cut(1, 6);
  const std::vector<Message> late = TakeRequests();
  ASSERT_FALSE(late.empty());
  view_.clear_snapshot();
  FollowView(7);
  const std::vector<Message> removals = TakeRequests();
  ASSERT_THAT(removals, SizeIs(1));
  EXPECT_TRUE(removals[0].envelope.store_request().has_remove());
  EXPECT_EQ(removals[0].envelope.store_request().path(), kPath);
  for (const Message& request : late) Answer(request);
  Answer(removals[0]);
  EXPECT_EQ(Requests(), 0u);
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_.Read(kPath, 0, 0).status()));
}

TEST_F(SnapshotWriterTest, StoresOnlyWhatItHoldsAsTheLastFullMember) {
  AddShard();
  proto::Node& node = *view_.add_nodes();
  node = view_.nodes(0);
  node.set_id(3);
  proto::Replica& last = *view_.mutable_tables(0)->mutable_shards(1)->add_chain();
  last.set_node(3);
  last.set_loop(1);
  Order(1, 6);
  FollowView(6);
  Cut(kSecond, 1, 6, {.values = Filled(4, 1)});
  EXPECT_EQ(Requests(), 0u);
  Cut(1, 6);
  AnswerAll();
  ASSERT_THAT(reports_, SizeIs(1));
  ASSERT_EQ(reports_[0].shards_size(), 1);
  EXPECT_EQ(reports_[0].shards(0).shard(), 0u);
}

// The head's record can be faster than the view that has the order.
TEST_F(SnapshotWriterTest, StoresACutThatComesBeforeItsOrder) {
  FollowView(5);
  Cut(1, 6);
  EXPECT_EQ(Requests(), 0u);
  Order(1, 6);
  FollowView(6);
  EXPECT_GT(Requests(), 0u);
}

TEST_F(SnapshotWriterTest, DropsACutWhoseOrderWasWithdrawnMeanwhile) {
  FollowView(5);
  Cut(1, 6);
  FollowView(7);
  Order(2, 8);
  FollowView(8);
  EXPECT_EQ(Requests(), 0u);
  Cut(1, 6);
  EXPECT_EQ(Requests(), 0u) << "a late cut of an earlier order";
  Cut(2, 8);
  EXPECT_GT(Requests(), 0u);
}

}  // namespace
}  // namespace covey::server
