// SPDX-License-Identifier: Apache-2.0

// A shard of a new table begins with values of a snapshot: what the loader reads, and what a
// content makes of it.

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer_pool.h"
#include "common/net/frame_checksum.h"
#include "common/snapshot/import_writer.h"
#include "common/store/testing/memory_folder.h"
#include "server/replication/content_pieces.h"
#include "server/replication/shard_content.h"
#include "server/snapshot/shard_loader.h"
#include "server/table/host_memory.h"

namespace covey::server {
namespace {

constexpr char kFolder[] = "import-model";
constexpr char kFile[] = "import-model/values.cvp";
constexpr NodeId kSelf(20);
constexpr uint64_t kElements = 3 * kImportPieceElements;
// Begins and ends inside pieces.
constexpr uint64_t kFirst = kImportPieceElements - 7;
constexpr uint64_t kCount = kImportPieceElements + 11;

float ValueAt(uint64_t element) { return static_cast<float>(element % 100'003) / 8; }

class InitialValuesTest : public testing::Test {
 protected:
  InitialValuesTest() {
    ImportWriter writer(store_, kFolder, 0);
    const std::vector<uint64_t> shape = {kElements};
    const auto ramp = [](uint64_t first, std::span<float> values) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = ValueAt(first + i);
      return absl::OkStatus();
    };
    EXPECT_TRUE(writer.Add(ImportedTable("weight", shape), ramp).ok());
    EXPECT_TRUE(writer.Finish().ok());
  }

  // Loads the shard until the loader asks for nothing more.
  std::vector<ShardLoader::Piece> Load(ShardId shard, const LoadSource& source) {
    ShardLoader loader;
    Outbox outbox;
    std::vector<ShardLoader::Piece> pieces;
    loader.Want(shard, source, kSelf, outbox);
    for (std::vector<Message> requests = outbox.TakeMessages(); !requests.empty();
         requests = outbox.TakeMessages()) {
      for (const Message& request : requests) {
        EXPECT_TRUE(loader.OnStoreReply(Answer(request), outbox));
        for (ShardLoader::Piece& piece : loader.TakePieces()) pieces.push_back(std::move(piece));
      }
    }
    return pieces;
  }
  static LoadSource Range(uint64_t first, uint64_t count) {
    return {.folder = kFolder,
            .table = "weight",
            .first = first,
            .count = count,
            .takes = LoadSource::Takes::kValues};
  }

  std::unique_ptr<ShardContent> Fresh(uint64_t elements) {
    return *ShardContent::Create(absl::UnixEpoch(),
                                 DenseShardConfig{.element_count = elements,
                                                  .optimizer = {.kind = OptimizerKind::kMomentum}},
                                 memory_);
  }

  MemoryFolder store_;
  BufferPool spares_{1 << 20};
  HostMemory memory_{spares_};

 private:
  Message Answer(const Message& request) {
    const proto::StoreRequest& asked = request.envelope.store_request();
    const absl::StatusOr<Buffer> bytes =
        store_.Read(asked.path(), asked.read().offset(), asked.read().bytes());
    Message reply;
    reply.envelope.mutable_store_reply()->set_id(asked.id());
    SetStatus(bytes.status(), reply);
    if (bytes.ok()) reply.frames.push_back(*bytes);
    return reply;
  }
};

const ShardId kShard = {TableId(1), ShardIndex(1)};

TEST_F(InitialValuesTest, AContentBeginsWithTheRangeAndNothingElse) {
  const std::vector<ShardLoader::Piece> pieces = Load(kShard, Range(kFirst, kCount));
  ASSERT_EQ(pieces.size(), 3u);
  ContentImport import(Fresh(kCount), LoadSource::Takes::kValues);
  for (const ShardLoader::Piece& piece : pieces) {
    ASSERT_TRUE(piece.message.ok()) << piece.message.status();
    EXPECT_EQ(piece.shard, kShard);
    EXPECT_TRUE(CheckFrameChecksums(*piece.message).ok());
    const absl::StatusOr<bool> complete = import.Add(absl::UnixEpoch(), *piece.message);
    ASSERT_TRUE(complete.ok()) << complete.status();
    EXPECT_EQ(*complete, &piece == &pieces.back());
  }
  const std::unique_ptr<ShardContent> content = import.Take();
  const Buffer values = content->Values();
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(values.As<float>()[i], ValueAt(kFirst + i));
  const Buffer slot = content->Slot(0);
  for (const float velocity : slot.As<float>()) ASSERT_EQ(velocity, 0);
  EXPECT_EQ(content->index(), 0u);
  EXPECT_EQ(content->version(), Version());
  EXPECT_EQ(content->samples(), 0u);
}

TEST_F(InitialValuesTest, AContentTakesNothingButValues) {
  ContentImport import(Fresh(4), LoadSource::Takes::kValues);
  ContentExport everything(Fresh(4)->Cut());
  EXPECT_TRUE(import.Add(absl::UnixEpoch(), everything.Piece(0)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(import.Add(absl::UnixEpoch(), everything.Piece(1)).status()));
}

TEST_F(InitialValuesTest, DamageIsNamedAndEndsTheLoad) {
  store_.BytesOf(kFile)[200] ^= 1;
  std::vector<ShardLoader::Piece> pieces = Load(kShard, Range(0, 5));
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(pieces[0].message.status()));
  EXPECT_NE(pieces[0].message.status().message().find(kFile), std::string::npos);
  // What is intact is read.
  pieces = Load(kShard, Range(kImportPieceElements, 5));
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(pieces[0].message.ok()) << pieces[0].message.status();
}

TEST_F(InitialValuesTest, ATableThatIsNotThereIsNamed) {
  LoadSource source = Range(0, 5);
  source.table = "bias";
  const std::vector<ShardLoader::Piece> pieces = Load(kShard, source);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].message.status().message(), "import-model has no table 'bias'");
}

}  // namespace
}  // namespace covey::server
