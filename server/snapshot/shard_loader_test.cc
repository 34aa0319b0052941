// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/shard_loader.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/net/frame_checksum.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/stored_piece.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/store_requests.h"
#include "common/store/testing/memory_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr NodeId kSelf(9);
constexpr char kFolder[] = "snapshot-000003-e42";
constexpr char kPart[] = "snapshot-000003-e42/part-3-1-000.cvp";
constexpr ShardId kWeights0{TableId(1), ShardIndex(0)};
constexpr ShardId kWeights1{TableId(1), ShardIndex(1)};
constexpr ShardId kBias{TableId(2), ShardIndex(0)};

// A loop that loads shards of SmallSnapshot. kPart holds kWeights1, then kBias.
class ShardLoaderTest : public ::testing::Test {
 protected:
  ShardLoaderTest() { EXPECT_TRUE(snapshot_.WriteTo(store_).ok()); }

  void Want(ShardId shard) { loader_.Want(shard, SourceOf(shard), kSelf, outbox_); }
  // All of the shard of this id, under which no other table is known.
  LoadSource SourceOf(ShardId id) const {
    for (const proto::Table& table : snapshot_.manifest.state().view().tables()) {
      if (table.id() != id.table.value()) continue;
      const proto::Shard& shard = table.shards(static_cast<int>(id.index.value()));
      return {.folder = kFolder,
              .table = table.spec().name(),
              .first = shard.first_element(),
              .count = shard.element_count()};
    }
    return {.folder = kFolder, .table = "none"};
  }
  // Carries out all requests, and those that follow; returns the pieces.
  std::vector<ShardLoader::Piece> Pieces() {
    std::vector<ShardLoader::Piece> pieces;
    for (auto requests = outbox_.TakeMessages(); !requests.empty();
         requests = outbox_.TakeMessages()) {
      for (const Message& request : requests) {
        EXPECT_EQ(request.to(), Address({kSelf, kStoreLoop}));
        Message reply = AnswerStoreRequest(request, store_);
        const std::string& path = request.envelope.store_request().path();
        if (int& failures = unreadable_[path]; failures > 0) {
          --failures;
          reply.frames.clear();
          SetStatus(absl::UnavailableError(path + ": Input/output error"), reply);
        }
        loader_.OnStoreReply(reply, outbox_);
        for (ShardLoader::Piece& piece : loader_.TakePieces()) pieces.push_back(std::move(piece));
      }
    }
    return pieces;
  }
  std::vector<ShardLoader::Piece> Load(ShardId shard) {
    Want(shard);
    return Pieces();
  }
  const proto::SnapshotShard& EntryOf(ShardId id) const {
    for (const proto::SnapshotShard& shard : snapshot_.manifest.shards()) {
      if (shard.table() == id.table.value() && shard.shard() == id.index.value()) return shard;
    }
    return proto::SnapshotShard::default_instance();
  }
  // All pieces of the shard, in order, each as the snapshot has it.
  void ExpectLoaded(ShardId id, const std::vector<ShardLoader::Piece>& pieces) {
    const proto::SnapshotShard& shard = EntryOf(id);
    ASSERT_EQ(pieces.size(), static_cast<size_t>(shard.pieces_size()));
    const std::string file = snapshot_.Bytes().at(std::string(kFolder) + "/" + shard.file());
    for (int i = 0; i < shard.pieces_size(); ++i) {
      EXPECT_EQ(pieces[static_cast<size_t>(i)].shard, id);
      const auto& message = pieces[static_cast<size_t>(i)].message;
      ASSERT_TRUE(message.ok()) << message.status();
      const proto::ReplicaPiece& piece = message->envelope.replica_piece();
      const proto::SnapshotPiece& stored = shard.pieces(i);
      EXPECT_EQ(piece.index(), shard.index());
      EXPECT_EQ(piece.version(), shard.version());
      EXPECT_EQ(piece.samples(), shard.samples());
      EXPECT_EQ(piece.piece(), static_cast<uint64_t>(i));
      EXPECT_EQ(piece.pieces(), static_cast<uint64_t>(shard.pieces_size()));
      EXPECT_EQ(static_cast<int>(piece.kind()), static_cast<int>(stored.kind()));
      EXPECT_EQ(piece.slot(), stored.slot());
      EXPECT_EQ(piece.first(), stored.first());
      ASSERT_THAT(message->frames, SizeIs(1));
      const Buffer& frame = message->frames[0];
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(frame.data()), frame.size()),
                file.substr(stored.offset(), stored.bytes()));
      EXPECT_EQ(message->envelope.frame_checksums(0), FrameChecksum(frame));
    }
  }
  // Only whole pieces, and then the error, which names the file.
  static void ExpectRefused(const std::vector<ShardLoader::Piece>& pieces, Code code,
                            const std::string& file) {
    ASSERT_FALSE(pieces.empty());
    for (size_t i = 0; i + 1 < pieces.size(); ++i) EXPECT_TRUE(pieces[i].message.ok());
    const absl::Status& status = pieces.back().message.status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
  }

  const SmallSnapshot snapshot_ = SmallSnapshot::Make(3, 42);
  MemoryFolder store_;
  std::map<std::string, int> unreadable_;  // reads that fail before one succeeds, by path
  ShardLoader loader_;
  Outbox outbox_;
};

TEST_F(ShardLoaderTest, LoadsExactlyWhatIsStored) {
  for (const ShardId shard : {kWeights0, kWeights1, kBias}) ExpectLoaded(shard, Load(shard));
}

TEST_F(ShardLoaderTest, LoadsOneShardAfterTheOtherWithFewRequests) {
  for (const ShardId shard : {kWeights0, kWeights1, kBias}) Want(shard);
  std::vector<Message> waiting = outbox_.TakeMessages();
  std::map<ShardId, std::vector<ShardLoader::Piece>> pieces;
  int manifests = 0;
  while (!waiting.empty()) {
    EXPECT_LE(waiting.size(), 2u);
    const Message request = std::move(waiting.front());
    waiting.erase(waiting.begin());
    if (request.envelope.store_request().path() == std::string(kFolder) + "/MANIFEST") ++manifests;
    EXPECT_TRUE(loader_.OnStoreReply(AnswerStoreRequest(request, store_), outbox_));
    for (Message& message : outbox_.TakeMessages()) waiting.push_back(std::move(message));
    for (ShardLoader::Piece& piece : loader_.TakePieces()) {
      pieces[piece.shard].push_back(std::move(piece));
    }
  }
  EXPECT_EQ(manifests, 1);
  for (const ShardId shard : {kWeights0, kWeights1, kBias}) ExpectLoaded(shard, pieces[shard]);
}

TEST_F(ShardLoaderTest, RefusesEveryDamagedByte) {
  std::string& bytes = store_.BytesOf(kPart);
  const size_t bias = RangeOf(EntryOf(kBias).pieces(0)).offset;
  ASSERT_GT(bias, kPartBlockBytes);
  for (size_t at = kPartBlockBytes; at < bytes.size(); ++at) {
    SCOPED_TRACE(at);
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const std::vector<ShardLoader::Piece> pieces = Load(at < bias ? kWeights1 : kBias);
    ExpectRefused(pieces, Code::kDataLoss, kPart);
    const std::string text(pieces.back().message.status().message());
    uint64_t from = 0;
    for (const proto::SnapshotPiece& piece : EntryOf(at < bias ? kWeights1 : kBias).pieces()) {
      if (RangeOf(piece).offset <= at) from = piece.offset();
    }
    EXPECT_THAT(text, HasSubstr("byte " + std::to_string(from)));
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  }
  ExpectLoaded(kBias, Load(kBias));
}

TEST_F(ShardLoaderTest, RefusesAMissingAndAShortFile) {
  std::string& bytes = store_.BytesOf(kPart);
  bytes.pop_back();
  ExpectRefused(Load(kBias), Code::kOutOfRange, kPart);
  ExpectLoaded(kWeights1, Load(kWeights1));
  ASSERT_TRUE(store_.Remove(kPart, "").ok());
  const auto pieces = Load(kBias);
  EXPECT_THAT(pieces, SizeIs(1));
  ExpectRefused(pieces, Code::kNotFound, kPart);
}

// Intact pieces that belong elsewhere.
TEST_F(ShardLoaderTest, RefusesForeignPieces) {
  std::string& bytes = store_.BytesOf(kPart);
  const StoredRange own = RangeOf(EntryOf(kWeights1).pieces(0));
  const StoredRange foreign = RangeOf(EntryOf(kBias).pieces(0));
  ASSERT_EQ(own.bytes, foreign.bytes);
  const std::string kept = bytes.substr(own.offset, own.bytes);
  bytes.replace(own.offset, own.bytes, bytes.substr(foreign.offset, own.bytes));
  bytes.replace(foreign.offset, own.bytes, kept);
  for (const ShardId shard : {kWeights1, kBias}) {
    const auto pieces = Load(shard);
    EXPECT_THAT(pieces, SizeIs(1));
    ExpectRefused(pieces, Code::kDataLoss, kPart);
  }
  // The same shard of another snapshot.
  const SmallSnapshot other = SmallSnapshot::Make(4, 42);
  bytes = other.Bytes().at("snapshot-000004-e42/part-3-1-000.cvp");
  ExpectRefused(Load(kWeights1), Code::kDataLoss, kPart);
}

// The wanted snapshot refers to the file of an earlier one, which is not complete any more.
TEST_F(ShardLoaderTest, FollowsReferences) {
  const SmallSnapshot later = SmallSnapshot::MakeAfter(snapshot_, 4, 43);
  ASSERT_TRUE(later.WriteTo(store_).ok());
  ASSERT_TRUE(store_.Remove(kFolder, "MANIFEST", {"part-3-1-000.cvp"}).ok());
  const auto load = [&](ShardId shard) {
    LoadSource source = SourceOf(shard);
    source.folder = later.manifest.folder();
    loader_.Want(shard, source, kSelf, outbox_);
    return Pieces();
  };
  ExpectLoaded(kWeights1, load(kWeights1));
  ExpectLoaded(kBias, load(kBias));
  const auto own = load(kWeights0);
  ASSERT_FALSE(own.empty());
  ASSERT_TRUE(own[0].message.ok());
  EXPECT_EQ(own[0].message->envelope.replica_piece().index(), later.manifest.shards(0).index());
  store_.BytesOf(kPart)[EntryOf(kBias).pieces(0).offset()] ^= 1;
  ExpectRefused(load(kBias), Code::kDataLoss, kPart);
}

TEST_F(ShardLoaderTest, RefusesADamagedAndAMissingManifest) {
  std::string& bytes = store_.BytesOf(std::string(kFolder) + "/MANIFEST");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  Want(kWeights0);
  Want(kBias);
  const auto pieces = Pieces();
  ASSERT_THAT(pieces, SizeIs(2)) << "each wanted shard is told";
  for (const ShardLoader::Piece& piece : pieces) {
    EXPECT_EQ(piece.message.status().code(), Code::kDataLoss);
  }
  ASSERT_TRUE(store_.Remove(std::string(kFolder) + "/MANIFEST", "").ok());
  ExpectRefused(Load(kBias), Code::kNotFound, kFolder);
}

TEST_F(ShardLoaderTest, RefusesAnEmptyManifestAndOneOfAnotherFolder) {
  store_.BytesOf(std::string(kFolder) + "/MANIFEST").clear();
  ExpectRefused(Load(kBias), Code::kDataLoss, kFolder);
  const SmallSnapshot other = SmallSnapshot::Make(4, 42);
  store_.BytesOf(std::string(kFolder) + "/MANIFEST") =
      other.Bytes().at(other.manifest.folder() + "/MANIFEST");
  ExpectRefused(Load(kBias), Code::kDataLoss, kFolder);
}

TEST_F(ShardLoaderTest, ReadsAgainWhatTheStoreCouldNotRead) {
  const std::string manifest = std::string(kFolder) + "/MANIFEST";
  for (const std::string& path : {std::string(kPart), manifest}) {
    unreadable_[path] = ShardLoader::kAttempts - 1;
    ExpectLoaded(kWeights1, Load(kWeights1));
    unreadable_[path] = 100;
    ExpectRefused(Load(kWeights1), Code::kUnavailable, path);
    EXPECT_GE(unreadable_[path], 100 - 2 * ShardLoader::kAttempts) << "two pieces are in flight";
    unreadable_[path] = 0;
  }
  unreadable_[manifest] = unreadable_[kPart] = ShardLoader::kAttempts - 1;
  ExpectLoaded(kWeights1, Load(kWeights1));
}

TEST_F(ShardLoaderTest, AShardThatFailsHindersNoOther) {
  store_.BytesOf(kPart)[EntryOf(kWeights1).pieces(0).offset()] = 'x';
  Want({TableId(7), ShardIndex(0)});
  Want(kWeights1);
  Want(kBias);
  std::vector<ShardLoader::Piece> pieces = Pieces();
  ASSERT_GE(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].message.status().code(), Code::kNotFound);
  EXPECT_EQ(pieces[1].message.status().code(), Code::kDataLoss);
  ExpectLoaded(kBias, {pieces.begin() + 2, pieces.end()});
}

TEST_F(ShardLoaderTest, RepliesToOthersAreNotItsOwn) {
  Want(kBias);
  Message reply = StoreReplyTo(Message());
  reply.envelope.mutable_store_reply()->set_id(1);
  EXPECT_FALSE(loader_.OnStoreReply(reply, outbox_));
  EXPECT_THAT(loader_.TakePieces(), IsEmpty());
  ExpectLoaded(kBias, Pieces());
}

}  // namespace
}  // namespace covey::server
