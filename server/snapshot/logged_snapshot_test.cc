// SPDX-License-Identifier: Apache-2.0

// A flush has the updates since the one before in the place of content: written by SnapshotWriter,
// read by ReadStoredContent and LoadContent.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/cluster/view.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/store_requests.h"
#include "common/store/testing/memory_folder.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replay/stored_content.h"
#include "server/replication/shard_content.h"
#include "server/replication/table_rules.h"
#include "server/snapshot/snapshot_writer.h"
#include "server/table/host_memory.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Time kNow = absl::UnixEpoch();
constexpr Address kSelf{NodeId(2), 1};
constexpr ShardId kLarge{TableId(1), ShardIndex(0)};
constexpr ShardId kSmall{TableId(1), ShardIndex(1)};
constexpr uint64_t kLargeElements = 4096;
constexpr uint64_t kSmallElements = 512;

// A loop that alone holds a table with momentum in two shards; and the scheduler's part.
class LoggedSnapshotTest : public ::testing::Test {
 protected:
  LoggedSnapshotTest() : snapshot_(SmallSnapshot::Make(1, 50)) {
    proto::ClusterView& view = *snapshot_.manifest.mutable_state()->mutable_view();
    view.mutable_nodes(0)->add_endpoints("");
    view.mutable_nodes(0)->add_endpoints("tcp://127.0.0.1:1");
    view.mutable_tables()->RemoveLast();
    proto::Table& table = *view.mutable_tables(0);
    table.mutable_spec()->clear_shape();
    table.mutable_spec()->add_shape(kLargeElements + kSmallElements);
    for (const ShardId id : {kLarge, kSmall}) {
      proto::Shard& shard = *table.mutable_shards(static_cast<int>(id.index.value()));
      shard.set_first_element(id == kLarge ? 0 : kLargeElements);
      shard.set_element_count(id == kLarge ? kLargeElements : kSmallElements);
      shard.mutable_chain(0)->set_node(kSelf.node.value());
      shard.set_chain_epoch(1);
      contents_[id] = *ShardContent::Create(kNow, RulesOf(table, shard)->shard, memory_);
    }
  }

  const proto::Table& table() const { return snapshot_.manifest.state().view().tables(0); }
  const proto::Shard& RangeOf(ShardId id) const {
    return table().shards(static_cast<int>(id.index.value()));
  }
  ShardContent& Content(ShardId id) { return *contents_.at(id); }

  // Applies the record to the content, and shows it to the writer unless it is missed.
  void Append(ShardId id, ShardRecord record, std::span<const float> gradient,
              bool is_missed = false) {
    record.index = Content(id).index() + 1;
    ASSERT_TRUE(Content(id).Apply(kNow, record, std::span<const float>(gradient)).ok());
    if (!is_missed) writer_.OnHeld(id, 7, record, Content(id).bytes());
    writer_.SendLogs(outbox_);
  }
  void Update(ShardId id, WireFormat format = WireFormat::kFloat32, bool is_missed = false) {
    std::vector<float> gradient(Content(id).element_count());
    for (float& g : gradient) g = static_cast<float>(static_cast<int>(++drawn_ % 17) - 8) / 16;
    ShardRecord record;
    record.version = Content(id).version().Next();
    record.samples = 3;
    record.pushes.push_back({.key = {.producer = {.kind = Producer::Kind::kGroup, .id = 1},
                                     .incarnation = 1,
                                     .sequence = record.version.value()},
                             .group = GroupId(1),
                             .step = Step(record.version.value())});
    record.gradient.format = ToProto(format);
    record.gradient.frame = Buffer::Allocate(EncodedBytes(format, gradient.size()));
    Encode(format, gradient, {record.gradient.frame.MutableData(), record.gradient.frame.size()});
    std::vector<float> decoded(gradient.size());
    Decode(format, record.gradient.frame.bytes(), decoded);
    Append(id, std::move(record), decoded, is_missed);
  }
  void UpdateBoth() {
    Update(kLarge);
    Update(kSmall);
  }

  void FollowView() {
    proto::ClusterView& view = *snapshot_.manifest.mutable_state()->mutable_view();
    view.set_epoch(view.epoch() + 1);
    const auto made = ClusterView::Make(view);
    ASSERT_TRUE(made.ok()) << made.status();
    writer_.FollowView(**made, kSelf, outbox_);
  }
  enum class Kind { kFlush, kAsked };
  void Order(Kind kind) {
    proto::ClusterView& view = *snapshot_.manifest.mutable_state()->mutable_view();
    proto::SnapshotOrder& order = *view.mutable_snapshot();
    order.set_id(++last_id_);
    order.set_epoch(view.epoch() + 1);
    order.set_folder(SnapshotFolderName(order.id(), order.epoch()));
    order.set_base(base_);
    order.set_is_flush(kind == Kind::kFlush);
    FollowView();
  }
  void Cut(ShardId id) {
    const proto::SnapshotOrder& order = snapshot_.manifest.state().view().snapshot();
    Append(id, CutRecord(order.id(), Epoch(order.epoch())), {});
    TakeCut(id, Content(id).Cut());
  }
  void TakeCut(ShardId id, const ContentCut& cut) {
    const proto::SnapshotOrder& order = snapshot_.manifest.state().view().snapshot();
    cuts_[id] = cut;
    writer_.Add(id, 7, {.snapshot = order.id(), .epoch = Epoch(order.epoch()), .content = cut},
                outbox_);
  }
  void AnswerAll() {
    std::vector<Message> messages = outbox_.TakeMessages();
    while (!messages.empty()) {
      for (const Message& message : messages) {
        if (message.envelope.has_snapshot_report_request()) {
          reports_.push_back(message.envelope.snapshot_report_request());
        } else {
          writer_.OnStoreReply(AnswerStoreRequest(message, store_), outbox_);
        }
      }
      messages = outbox_.TakeMessages();
    }
  }
  // Cuts both shards, and completes the snapshot.
  const proto::SnapshotManifest& Make(Kind kind) {
    Order(kind);
    Cut(kLarge);
    Cut(kSmall);
    return Complete();
  }
  const proto::SnapshotManifest& Complete() {
    AnswerAll();
    const proto::SnapshotOrder order = snapshot_.manifest.state().view().snapshot();
    EXPECT_EQ(reports_.back().snapshot(), order.id());
    EXPECT_EQ(reports_.back().failure(), "");
    proto::SnapshotManifest& manifest = snapshot_.manifest;
    manifest.set_id(order.id());
    manifest.set_epoch(order.epoch());
    manifest.set_folder(order.folder());
    manifest.clear_shards();
    for (const ShardId id : {kLarge, kSmall}) {
      for (const proto::SnapshotShard& entry : reports_.back().shards()) {
        if (entry.shard() == id.index.value()) *manifest.add_shards() = entry;
      }
    }
    *manifest.mutable_files() = reports_.back().files();
    manifest.mutable_state()->mutable_view()->clear_snapshot();
    EXPECT_TRUE(snapshot_.PublishManifest(store_).ok());
    base_ = order.folder();
    FollowView();
    return manifest;
  }
  // Where the shard is, by its entries: "3/log" = a log in the folder of snapshot 3.
  std::vector<std::string> Places(ShardId id) {
    std::vector<std::string> places;
    const ShardEntries entries = EntriesOf(snapshot_.manifest, id.table.value(), id.index.value());
    const auto place = [&](const proto::SnapshotShard& entry) {
      const uint64_t folder = entry.folder().empty() ? snapshot_.manifest.id()
                                                     : ParseSnapshotFolderName(entry.folder())->id;
      return std::to_string(folder) + (IsLog(entry) ? "/log" : "/content");
    };
    places.push_back(place(*entries.content));
    for (const proto::SnapshotShard* log : entries.logs) places.push_back(place(*log));
    return places;
  }
  absl::StatusOr<ContentCut> Read(ShardId id) {
    const absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(store_, base_);
    if (!reader.ok()) return reader.status();
    return ReadStoredContent(*reader, table(), RangeOf(id),
                             EntriesOf(reader->manifest(), id.table.value(), id.index.value()));
  }
  // Whether the snapshot has both shards with the bits of their cuts.
  void ExpectBothAsCut() {
    for (const ShardId id : {kLarge, kSmall}) {
      const absl::StatusOr<ContentCut> content = Read(id);
      ASSERT_TRUE(content.ok()) << content.status();
      // Of an unchanged shard it is that of an earlier cut.
      ContentCut expected = cuts_.at(id);
      expected.index = content->index;
      expected.last_cut = content->last_cut;
      EXPECT_EQ(content->Digest(), expected.Digest()) << id.index.value();
    }
    const absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(store_, base_);
    EXPECT_TRUE(reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); }).ok());
  }
  // The first two flushes: content, and content again, because what comes is not known yet.
  void MakeTwo() {
    Make(Kind::kFlush);
    UpdateBoth();
    Make(Kind::kFlush);
    EXPECT_THAT(Places(kLarge), ElementsAre("2/content"));
    EXPECT_THAT(Places(kSmall), ElementsAre("2/content"));
  }
  // What a loader gives for the source, as a content of that shard.
  absl::StatusOr<std::unique_ptr<ShardContent>> Load(const LoadSource& source) {
    proto::Shard range = RangeOf(kLarge);
    range.set_first_element(source.first);
    range.set_element_count(source.count);
    return LoadContent(store_, source,
                       *ShardContent::Create(kNow, RulesOf(table(), range)->shard, memory_));
  }

  SmallSnapshot snapshot_;
  BufferPool spares_{1 << 20};
  HostMemory memory_{spares_};
  std::map<ShardId, std::unique_ptr<ShardContent>> contents_;
  std::map<ShardId, ContentCut> cuts_;  // the newest
  SnapshotWriter writer_{[](ShardId, Version) { return false; }};
  Outbox outbox_;
  MemoryFolder store_;
  std::vector<proto::SnapshotReportRequest> reports_;
  std::string base_;
  uint64_t last_id_ = 0;
  uint64_t drawn_ = 0;
};

TEST_F(LoggedSnapshotTest, AFlushHasTheUpdatesSinceTheLastInPlaceOfContent) {
  MakeTwo();
  Update(kLarge);
  Update(kSmall);
  Update(kSmall, WireFormat::kFloat16);
  const proto::SnapshotManifest& manifest = Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("2/content", "2/log"));
  EXPECT_THAT(Places(kSmall), ElementsAre("2/content", "2/log"));
  EXPECT_TRUE(HasLogs(manifest));
  EXPECT_TRUE(absl::IsNotFound(store_.List(manifest.folder() + "/part-2-1.cvp").status()));
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, LogsFollowEachOtherUntilTheyAreAsLargeAsTheContent) {
  MakeTwo();
  UpdateBoth();
  Make(Kind::kFlush);
  ExpectBothAsCut();
  // Nothing has happened: the next log follows this cut.
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("2/content", "2/log"));
  ExpectBothAsCut();
  // The content, values and momentum, is less than two gradients with their records.
  UpdateBoth();
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("5/content"));
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, SmallUpdatesMakeManyLogs) {
  Make(Kind::kFlush);
  Update(kLarge, WireFormat::kInt8Block);
  Make(Kind::kFlush);
  for (int i = 0; i < 3; ++i) {
    Update(kLarge, WireFormat::kInt8Block);
    Make(Kind::kFlush);
    ExpectBothAsCut();
  }
  EXPECT_THAT(Places(kLarge), ElementsAre("2/content", "2/log", "3/log", "4/log"));
  // It has never changed.
  EXPECT_THAT(Places(kSmall), ElementsAre("2/content"));
}

TEST_F(LoggedSnapshotTest, MoreUpdatesThanExpectedAreStoredAsContent) {
  MakeTwo();
  for (int i = 0; i < 3; ++i) Update(kLarge);
  Update(kSmall);
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("3/content"));
  EXPECT_THAT(Places(kSmall), ElementsAre("2/content", "2/log"));
  ExpectBothAsCut();
  // As many are expected again.
  Update(kLarge);
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("4/content"));
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, ASnapshotThatSomebodyAskedForHoldsContent) {
  MakeTwo();
  UpdateBoth();
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), SizeIs(2));
  Make(Kind::kAsked);
  EXPECT_THAT(Places(kLarge), ElementsAre("4/content"));
  ExpectBothAsCut();
}

// Updates that follow the cut, and come before it is stored, are in the next log.
TEST_F(LoggedSnapshotTest, TheCutDividesTheUpdatesBetweenTwoLogs) {
  MakeTwo();
  UpdateBoth();
  Order(Kind::kFlush);
  const proto::SnapshotOrder order = snapshot_.manifest.state().view().snapshot();
  Append(kLarge, CutRecord(order.id(), Epoch(order.epoch())), {});
  const ContentCut cut = Content(kLarge).Cut();
  Update(kLarge, WireFormat::kInt8Block);
  TakeCut(kLarge, cut);
  Update(kLarge, WireFormat::kInt8Block);
  Cut(kSmall);
  Complete();
  EXPECT_THAT(Places(kLarge), ElementsAre("2/content", "2/log"));
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, ARecordThatWasMissedMeansContent) {
  MakeTwo();
  Update(kLarge, WireFormat::kInt8Block);
  Update(kLarge, WireFormat::kInt8Block, /*is_missed=*/true);
  Update(kLarge, WireFormat::kInt8Block);
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("3/content"));
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, AfterASnapshotThatWasNotCompletedThereIsContent) {
  MakeTwo();
  const std::string base = base_;
  UpdateBoth();
  Order(Kind::kFlush);
  Cut(kLarge);
  snapshot_.manifest.mutable_state()->mutable_view()->clear_snapshot();
  FollowView();
  AnswerAll();
  UpdateBoth();
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("4/content"));
  EXPECT_THAT(Places(kSmall), ElementsAre("4/content"));
  ExpectBothAsCut();
  // Nothing is left of the logs.
  EXPECT_THAT(*store_.List(base), SizeIs(2));
}

TEST_F(LoggedSnapshotTest, ALogThatTheStoreRefusesFailsTheFlush) {
  MakeTwo();
  UpdateBoth();
  store_.PlanFault(store_.operations() + 2, MemoryFolder::Fault::kNoSpace);
  Order(Kind::kFlush);
  Cut(kLarge);
  Cut(kSmall);
  AnswerAll();
  EXPECT_THAT(reports_.back().failure(), HasSubstr("log-2-1.cvp"));
  snapshot_.manifest.mutable_state()->mutable_view()->clear_snapshot();
  FollowView();
  Make(Kind::kFlush);
  EXPECT_THAT(Places(kLarge), ElementsAre("4/content"));
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, EveryBitFlipInALogIsFound) {
  MakeTwo();
  UpdateBoth();
  const proto::SnapshotManifest& manifest = Make(Kind::kFlush);
  const proto::SnapshotShard& log = *EntriesOf(manifest, 1, kLarge.index.value()).logs[0];
  std::string& bytes = store_.BytesOf(log.folder() + "/" + log.file());
  const uint64_t end = log.pieces(0).offset() + log.pieces(0).bytes();
  for (uint64_t at = log.pieces(0).offset() - 64; at < end; at += 61) {
    bytes[at] ^= 4;
    const absl::Status status = Read(kLarge).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << at << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("log-2-1.cvp, offset"));
    bytes[at] ^= 4;
  }
  ExpectBothAsCut();
}

TEST_F(LoggedSnapshotTest, AShardContinuesFromContentAndLog) {
  MakeTwo();
  UpdateBoth();
  Make(Kind::kFlush);
  const auto loaded =
      Load({.folder = base_, .table = "weights", .first = 0, .count = kLargeElements});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->Digest(), cuts_.at(kLarge).Digest());
}

TEST_F(LoggedSnapshotTest, ATableTakesItsStateFromContentAndLog) {
  MakeTwo();
  UpdateBoth();
  Make(Kind::kFlush);
  const auto loaded = Load({.folder = base_,
                            .table = "weights",
                            .first = kLargeElements,
                            .count = kSmallElements,
                            .takes = LoadSource::Takes::kState});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ShardContent& expected = Content(kSmall);
  EXPECT_EQ((*loaded)->version(), expected.version());
  EXPECT_EQ((*loaded)->samples(), expected.samples());
  EXPECT_THAT((*loaded)->Values().As<float>(),
              ::testing::ElementsAreArray(expected.Values().As<float>()));
  EXPECT_THAT((*loaded)->Slot(0).As<float>(),
              ::testing::ElementsAreArray(expected.Slot(0).As<float>()));
  EXPECT_EQ((*loaded)->index(), 0u);
}

// Of another cut into shards, which begins in the first and ends in the second.
TEST_F(LoggedSnapshotTest, ATableTakesItsValuesFromContentsAndLogs) {
  MakeTwo();
  UpdateBoth();
  Make(Kind::kFlush);
  constexpr uint64_t kFirst = kLargeElements - 100;
  const auto loaded = Load({.folder = base_,
                            .table = "weights",
                            .first = kFirst,
                            .count = 300,
                            .takes = LoadSource::Takes::kValues});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Buffer values = (*loaded)->Values();
  const auto found = values.As<float>();
  for (uint64_t i = 0; i < 300; ++i) {
    const float expected = i < 100 ? Content(kLarge).Values().As<float>()[kFirst + i]
                                   : Content(kSmall).Values().As<float>()[i - 100];
    ASSERT_EQ(found[i], expected) << i;
  }
}

}  // namespace
}  // namespace covey::server
