// SPDX-License-Identifier: Apache-2.0
#include "server/replication/content_pieces.h"

#include <algorithm>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "gtest/gtest.h"
#include "server/table/host_memory.h"

namespace covey::server {
namespace {

constexpr uint64_t kElements = 3 * (kReplicaPieceBytesMax / sizeof(float)) / 2;

class ContentPieces : public ::testing::Test {
 protected:
  std::unique_ptr<ShardContent> Fresh() {
    return *ShardContent::Create(absl::UnixEpoch(),
                                 DenseShardConfig{.element_count = kElements,
                                                  .optimizer = {.kind = OptimizerKind::kMomentum}},
                                 memory_);
  }
  void Advance(ShardContent& content, uint64_t step) {
    std::vector<float> gradient(kElements, 0.1f * static_cast<float>(step));
    gradient[step] = 7;
    ShardRecord record{.index = content.index() + 1,
                       .version = content.version().Next(),
                       .pushes = {{.key = {.producer = {.kind = Producer::Kind::kGroup, .id = 3},
                                           .incarnation = 2,
                                           .sequence = step},
                                   .group = GroupId(3),
                                   .step = Step(step)}},
                       .samples = 4,
                       .adjustment = {},
                       .gradient = {},
                       .digest = {}};
    ASSERT_TRUE(content.Apply(absl::UnixEpoch(), record, std::span<const float>(gradient)).ok());
  }

  BufferPool spares_{1 << 20};
  HostMemory memory_{spares_};
};

TEST_F(ContentPieces, MakeTheSameContentAsOfOneRecord) {
  const auto content = Fresh();
  for (uint64_t step = 1; step <= 3; ++step) Advance(*content, step);
  const uint64_t digest = content->Digest();
  ContentExport pieces(content->Cut());
  // Changes during the transfer are not in it.
  Advance(*content, 4);
  ContentImport import(Fresh());
  for (uint64_t piece = 0; piece < pieces.pieces(); ++piece) {
    const Message message = pieces.Piece(piece);
    EXPECT_LE(pieces.PieceBytes(piece), kReplicaPieceBytesMax);
    EXPECT_EQ(pieces.PieceBytes(piece), message.frames[0].size());
    EXPECT_TRUE(CheckFrameChecksums(message).ok());
    // Twice, as a network may do.
    for (int i = 0; i < 2; ++i) {
      const auto complete = import.Add(absl::UnixEpoch(), message);
      ASSERT_TRUE(complete.ok()) << complete.status();
      ASSERT_EQ(*complete, piece + 1 == pieces.pieces());
      if (*complete) break;
    }
  }
  const auto copy = import.Take();
  EXPECT_EQ(copy->Digest(), digest);
  EXPECT_EQ(copy->index(), 3u);
  // Both continue alike.
  Advance(*copy, 4);
  EXPECT_EQ(copy->Digest(), content->Digest());
}

// The content of a restored shard: the next update makes the same values as in the shard that the
// pieces are of, although nothing of its clocks and pushes came along.
TEST_F(ContentPieces, OfTheStateMakeAContentThatGoesOnWithoutClocksAndPushes) {
  const auto content = Fresh();
  for (uint64_t step = 1; step <= 3; ++step) Advance(*content, step);
  ContentExport pieces(content->Cut());
  ContentImport import(Fresh(), LoadSource::Takes::kState);
  const uint64_t last = pieces.pieces() - 2;
  for (uint64_t piece = 0; piece <= last; ++piece) {
    Message message = pieces.Piece(piece);
    proto::ReplicaPiece& body = *message.envelope.mutable_replica_piece();
    body.set_index(0);
    body.set_pieces(last + 1);
    const auto complete = import.Add(absl::UnixEpoch(), message);
    ASSERT_TRUE(complete.ok()) << complete.status();
    ASSERT_EQ(*complete, piece == last);
  }
  const auto restored = import.Take();
  EXPECT_EQ(restored->index(), 0u);
  EXPECT_EQ(restored->version(), content->version());
  EXPECT_EQ(restored->samples(), 12u);
  EXPECT_EQ(restored->clocks().StepOf(GroupId(3)), Step());
  Advance(*content, 4);
  Advance(*restored, 4);
  EXPECT_EQ(restored->ValuesChecksum(), content->ValuesChecksum());
  EXPECT_TRUE(std::ranges::equal(restored->Slot(0).bytes(), content->Slot(0).bytes()));
}

TEST_F(ContentPieces, OfTheStateHaveNoRecord) {
  const auto content = Fresh();
  ContentExport pieces(content->Cut());
  Message message = pieces.Piece(pieces.pieces() - 1);
  message.envelope.mutable_replica_piece()->set_piece(0);
  ContentImport import(Fresh(), LoadSource::Takes::kState);
  EXPECT_TRUE(absl::IsInvalidArgument(import.Add(absl::UnixEpoch(), message).status()));
}

TEST_F(ContentPieces, AreNotCopiedAndMayBeMadeInAnyOrder) {
  const auto content = Fresh();
  Advance(*content, 1);
  ShardRecord cut_record = CutRecord(17, Epoch(3));
  cut_record.index = 2;
  ASSERT_TRUE(content->Apply(absl::UnixEpoch(), cut_record, {}).ok());
  const ContentCut cut = content->Cut();
  ContentExport forward(cut), backward(cut);
  ASSERT_EQ(forward.pieces(), 5u);  // two of the values, two of the slot, one of the rest
  for (uint64_t piece = 5; piece-- > 0;) backward.Piece(piece);
  std::vector<const uint8_t*> frames;
  for (uint64_t piece = 0; piece < 5; ++piece) {
    const Message message = forward.Piece(piece);
    frames.push_back(message.frames[0].data());
    EXPECT_EQ(message.envelope.frame_checksums(0), FrameChecksum(message.frames[0]));
    EXPECT_EQ(message.envelope.frame_checksums(0),
              backward.Piece(piece).envelope.frame_checksums(0));
  }
  frames.pop_back();
  EXPECT_EQ(frames, (std::vector<const uint8_t*>{
                        cut.values.data(), cut.values.data() + kReplicaPieceBytesMax,
                        cut.slots[0].data(), cut.slots[0].data() + kReplicaPieceBytesMax}));
  proto::ReplicaRecord record;
  const Message last = forward.Piece(4);
  ASSERT_TRUE(record.ParseFromArray(last.frames[0].data(), last.frames[0].size()));
  EXPECT_EQ(record.last_cut(), 17u);
  EXPECT_EQ(record.digest(), content->Digest());
}

TEST_F(ContentPieces, BeginAnewWithAnotherRecord) {
  const auto content = Fresh();
  Advance(*content, 1);
  ContentExport first(content->Cut());
  Advance(*content, 2);
  ContentExport second(content->Cut());
  ContentImport import(Fresh());
  EXPECT_TRUE(import.Add(absl::UnixEpoch(), first.Piece(0)).ok());
  EXPECT_EQ(import.next_piece(), 1u);
  EXPECT_TRUE(import.Add(absl::UnixEpoch(), second.Piece(1)).ok());
  EXPECT_EQ(import.next_piece(), 0u);
  for (uint64_t piece = 0; piece < second.pieces(); ++piece) {
    ASSERT_TRUE(import.Add(absl::UnixEpoch(), second.Piece(piece)).ok());
  }
  EXPECT_EQ(import.Take()->Digest(), content->Digest());
}

TEST_F(ContentPieces, AreRefusedWhenTheyFitNothing) {
  const auto content = Fresh();
  Advance(*content, 1);
  ContentExport pieces(content->Cut());
  std::vector<Message> wrong(7, pieces.Piece(0));
  const auto body = [&](size_t i) { return wrong[i].envelope.mutable_replica_piece(); };
  body(0)->set_first(kElements);
  body(1)->set_first(~uint64_t{0} / 2);
  body(2)->set_kind(proto::ReplicaPiece::SLOT);
  body(2)->set_slot(1);
  body(3)->set_kind(proto::ReplicaPiece::RECORD);
  body(4)->set_kind(proto::ReplicaPiece::KIND_UNSPECIFIED);
  body(5)->set_pieces(0);
  wrong[6].frames.clear();
  for (const Message& message : wrong) {
    ContentImport import(Fresh());
    EXPECT_FALSE(import.Add(absl::UnixEpoch(), message).ok())
        << message.envelope.ShortDebugString();
    EXPECT_EQ(import.next_piece(), 0u);
  }
}

TEST_F(ContentPieces, AreRefusedWhenTheyAreWrongTogether) {
  const auto content = Fresh();
  Advance(*content, 1);
  for (const bool leaves_out : {false, true}) {
    ContentExport pieces(content->Cut());
    ContentImport import(Fresh());
    absl::Status status;
    const uint64_t count = leaves_out ? 1 : pieces.pieces();
    for (uint64_t piece = 0; piece < count && status.ok(); ++piece) {
      Message message = pieces.Piece(piece);
      if (leaves_out) message.envelope.mutable_replica_piece()->set_pieces(1);
      if (piece == 1) {
        message.frames[0] = Buffer::CopyOf(message.frames[0].bytes());
        message.frames[0].MutableData()[5] ^= 1;
      }
      status = import.Add(absl::UnixEpoch(), message).status();
    }
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(import.next_piece(), 0u);
  }
}

// Two rows, and two keys that wait for admission.
TEST_F(ContentPieces, OfRowsHaveTheKeysThatWait) {
  const SparseShardConfig config{.first_slot = 0,
                                 .slot_count = kKeySlots,
                                 .width = 1,
                                 .rows_max = 2,
                                 .admission = {.after = 2},
                                 .learning_rate = {.base_rate = 1}};
  const auto fresh = [&] { return *ShardContent::Create(absl::UnixEpoch(), config, memory_); };
  const auto push = [](ShardContent& content, const std::vector<uint64_t>& keys) {
    const std::vector<float> gradient(keys.size(), -1);
    const ShardRecord record{
        .index = content.index() + 1, .version = content.version().Next(), .samples = 1};
    ASSERT_TRUE(content.Apply(absl::UnixEpoch(), record, Gradient(gradient, keys)).ok());
  };
  const auto content = fresh();
  push(*content, {1, 2, 3});
  push(*content, {1, 2, 3, 4});
  ASSERT_EQ(content->sparse()->rows(), 2);
  ASSERT_EQ(content->sparse()->pending(), 2);
  const auto copy_of = [&](LoadSource::Takes takes) {
    ContentExport pieces(content->Cut());
    ContentImport import(fresh(), takes);
    for (uint64_t piece = 0; piece < pieces.pieces(); ++piece) {
      const auto complete = import.Add(absl::UnixEpoch(), pieces.Piece(piece));
      EXPECT_TRUE(complete.ok()) << complete.status();
    }
    return import.Take();
  };
  const auto copy = copy_of(LoadSource::Takes::kEverything);
  EXPECT_EQ(copy->Digest(), content->Digest());
  EXPECT_EQ(copy->sparse()->totals().refused, 1);
  push(*copy, {4, 5});
  push(*content, {4, 5});
  EXPECT_EQ(copy->Digest(), content->Digest());
  const auto state = copy_of(LoadSource::Takes::kState);
  EXPECT_EQ(state->sparse()->rows(), 2);
  EXPECT_EQ(state->sparse()->pending(), 3);
}

}  // namespace
}  // namespace covey::server
