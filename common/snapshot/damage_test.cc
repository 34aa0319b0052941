// SPDX-License-Identifier: Apache-2.0

// Every damage of a snapshot is found: bits, lengths, pieces and files in the wrong place.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/random.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

constexpr int kRandomFlips = 10000;

// Flips the bits that are set in `bits`.
void Flip(char& byte, uint64_t bits) { byte = static_cast<char>(byte ^ static_cast<char>(bits)); }

class DamageTest : public testing::Test {
 protected:
  DamageTest() : snapshot_(SmallSnapshot::Make(17, 42)), files_(snapshot_.Bytes()) {
    for (const auto& [path, bytes] : files_) folder_.AddFile(path, bytes);
  }

  // What a reader says of the snapshot as it is now.
  absl::Status Verify() {
    absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(folder_, "snapshot-000017-e42");
    return reader.ok() ? reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); })
                       : reader.status();
  }
  // The damage of `path` is found, and named; then mends it.
  void ExpectFound(const std::string& path, const std::string& what) {
    const absl::Status status = Verify();
    EXPECT_FALSE(status.ok()) << path << ": " << what;
    EXPECT_TRUE(absl::StrContains(status.message(), "snapshot-000017-e42/")) << status;
    folder_.BytesOf(path) = files_.at(path);
  }

  const SmallSnapshot snapshot_;
  const std::map<std::string, std::string> files_;
  MemoryFolder folder_;
};

TEST_F(DamageTest, AnIntactOneIsVerified) {
  uint64_t last = 0;
  absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(folder_, "snapshot-000017-e42");
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::Status status = reader->Verify([&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    EXPECT_EQ(reader->bytes(), all);
    last = done;
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(
      reader->Verify([](uint64_t, uint64_t) { return absl::CancelledError(""); })));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(reader->bytes(), last);
}

TEST_F(DamageTest, EverySingleBit) {
  for (const auto& [path, bytes] : files_) {
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      Flip(folder_.BytesOf(path)[bit / 8], 1 << (bit % 8));
      ExpectFound(path, "bit " + std::to_string(bit));
    }
  }
}

TEST_F(DamageTest, RandomBits) {
  Random random(1);
  for (int i = 0; i < kRandomFlips; ++i) {
    auto file = files_.begin();
    std::advance(file, static_cast<int>(random.Below(files_.size())));
    std::string& bytes = folder_.BytesOf(file->first);
    // A byte that is flipped back would be no damage, so each flip has a byte of its own.
    const uint64_t flips = 1 + random.Below(4);
    const uint64_t begin = random.Below(bytes.size() - flips);
    for (uint64_t k = 0; k < flips; ++k) {
      Flip(bytes[begin + k], 1 + random.Below(255));
    }
    ExpectFound(file->first, "random flips " + std::to_string(i));
  }
}

TEST_F(DamageTest, EveryLength) {
  for (const auto& [path, bytes] : files_) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      folder_.BytesOf(path).resize(size);
      ExpectFound(path, "cut off at " + std::to_string(size));
    }
    for (const size_t more : {1, 64, 128}) {
      folder_.BytesOf(path).resize(bytes.size() + more);
      ExpectFound(path, "longer by " + std::to_string(more));
    }
  }
}

// A piece in a file, with its header and padding.
struct Place {
  std::string path;
  size_t offset;
  size_t size;
};

std::vector<Place> PlacesOf(const SmallSnapshot& snapshot) {
  std::vector<Place> places;
  for (const SmallSnapshot::File& file : snapshot.files) {
    size_t offset = 0;
    for (const std::vector<Buffer>& frames : file.appended) {
      size_t size = 0;
      for (const Buffer& frame : frames) size += frame.size();
      places.push_back({snapshot.manifest.folder() + "/" + file.name, offset, size});
      offset += size;
    }
  }
  return places;
}

TEST_F(DamageTest, SwappedPieces) {
  const std::vector<Place> places = PlacesOf(snapshot_);
  int swapped = 0;
  for (const Place& a : places) {
    for (const Place& b : places) {
      const std::string bytes_a = files_.at(a.path).substr(a.offset, a.size);
      const std::string bytes_b = files_.at(b.path).substr(b.offset, b.size);
      if (a.size != b.size || bytes_a == bytes_b) continue;
      folder_.BytesOf(a.path).replace(a.offset, a.size, bytes_b);
      folder_.BytesOf(b.path).replace(b.offset, b.size, bytes_a);
      ExpectFound(a.path, "swapped with a piece at " + std::to_string(b.offset));
      folder_.BytesOf(b.path) = files_.at(b.path);
      // And a piece twice, the other one gone.
      folder_.BytesOf(a.path).replace(a.offset, a.size, bytes_b);
      ExpectFound(a.path, "overwritten by a piece at " + std::to_string(b.offset));
      ++swapped;
    }
  }
  EXPECT_GT(swapped, 20);
}

TEST_F(DamageTest, ForeignPiecesAndFiles) {
  const SmallSnapshot other = SmallSnapshot::Make(18, 42);
  const std::vector<Place> places = PlacesOf(snapshot_);
  const std::vector<Place> foreign = PlacesOf(other);
  ASSERT_EQ(places.size(), foreign.size());
  for (size_t i = 0; i < places.size(); ++i) {
    folder_.BytesOf(places[i].path)
        .replace(places[i].offset, places[i].size,
                 other.Bytes().at(foreign[i].path).substr(foreign[i].offset, foreign[i].size));
    ExpectFound(places[i].path, "foreign piece " + std::to_string(i));
  }
  for (const auto& [path, bytes] : files_) {
    const std::string name = path.substr(path.find('/'));
    folder_.BytesOf(path) = other.Bytes().at("snapshot-000018-e42" + name);
    ExpectFound(path, "foreign file");
  }
  // The same snapshot of another order.
  const SmallSnapshot later = SmallSnapshot::Make(17, 43);
  for (const auto& [path, bytes] : files_) {
    folder_.BytesOf(path) = later.Bytes().at("snapshot-000017-e43" + path.substr(path.find('/')));
    ExpectFound(path, "file of another order");
  }
}

TEST_F(DamageTest, MissingFiles) {
  for (const auto& [path, bytes] : files_) {
    ASSERT_TRUE(folder_.Remove(path, "").ok());
    const absl::Status status = Verify();
    EXPECT_TRUE(absl::StrContains(status.message(), path + " is missing")) << status;
    folder_.AddFile(path, bytes);
  }
}

// A snapshot that refers to files of the one of the fixture.
class ReferenceTest : public DamageTest {
 protected:
  ReferenceTest() {
    EXPECT_TRUE(later_.WriteTo(folder_).ok());
    EXPECT_TRUE(folder_.Remove("snapshot-000017-e42", "MANIFEST", {"part-3-1-000.cvp"}).ok());
  }
  absl::StatusOr<SnapshotReader> Open() {
    return SnapshotReader::Open(folder_, "snapshot-000018-e43");
  }
  absl::Status VerifyLater() {
    const absl::StatusOr<SnapshotReader> reader = Open();
    return reader.ok() ? reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); })
                       : reader.status();
  }

  const SmallSnapshot later_ = SmallSnapshot::MakeAfter(snapshot_, 18, 43);
  const std::string used_ = "snapshot-000017-e42/part-3-1-000.cvp";
};

TEST_F(ReferenceTest, IsFollowed) {
  const absl::StatusOr<SnapshotReader> reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  const proto::SnapshotShard& shard = reader->manifest().shards(1);
  ASSERT_EQ("snapshot-000017-e42", shard.folder());
  EXPECT_EQ(snapshot_.manifest.shards(1).index(), shard.index()) << "the earlier record";
  const absl::StatusOr<Buffer> values = reader->ReadPiece(shard, shard.pieces(0));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(files_.at(used_).substr(shard.pieces(0).offset(), shard.pieces(0).bytes()),
            std::string(reinterpret_cast<const char*>(values->data()), values->size()));
  uint64_t own = 0;
  for (const auto& [path, bytes] : later_.Bytes()) own += bytes.size();
  EXPECT_EQ(own, reader->bytes());
  EXPECT_EQ(files_.at(used_).size() - kPartBlockBytes, reader->reused_bytes());
  uint64_t last = 0;
  const absl::Status status = reader->Verify([&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    EXPECT_EQ(reader->bytes() + reader->reused_bytes(), all);
    last = done;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(reader->bytes() + reader->reused_bytes(), last);
}

TEST_F(ReferenceTest, EverySingleBitOfWhatItUses) {
  for (size_t bit = 0; bit < 8 * files_.at(used_).size(); ++bit) {
    Flip(folder_.BytesOf(used_)[bit / 8], 1 << (bit % 8));
    const absl::Status status = VerifyLater();
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsFailedPrecondition(status)) << bit;
    EXPECT_TRUE(absl::StrContains(status.message(), used_ + ", offset ")) << status;
    folder_.BytesOf(used_) = files_.at(used_);
  }
}

TEST_F(ReferenceTest, AFileThatIsNotThere) {
  folder_.AddFile("snapshot-000017-e42/other.cvp", "so that the folder stays");
  folder_.BytesOf(used_).resize(128);
  EXPECT_TRUE(absl::StrContains(VerifyLater().message(), used_ + " has 128 bytes instead of "));
  ASSERT_TRUE(folder_.Remove(used_, "").ok());
  EXPECT_TRUE(absl::StrContains(VerifyLater().message(), used_ + " is missing")) << VerifyLater();
  ASSERT_TRUE(folder_.Remove("snapshot-000017-e42", "").ok());
  EXPECT_TRUE(absl::StrContains(VerifyLater().message(), used_ + " is missing")) << VerifyLater();
  EXPECT_TRUE(absl::IsDataLoss(VerifyLater()));
}

// The file of another snapshot with the same shards.
TEST_F(ReferenceTest, AFileOfAnotherSnapshot) {
  folder_.BytesOf(used_) =
      SmallSnapshot::Make(16, 42).Bytes().at("snapshot-000016-e42/part-3-1-000.cvp");
  EXPECT_TRUE(absl::StrContains(VerifyLater().message(), "of another snapshot: 16 of epoch 42"))
      << VerifyLater();
}

TEST_F(ReferenceTest, AListLeavesOutWhatRemains) {
  folder_.AddFile("snapshot-000016-e42/part-3-1-000.cvp", "of a snapshot that nobody refers to");
  const absl::StatusOr<std::vector<SnapshotSummary>> snapshots = ListSnapshots(folder_);
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  ASSERT_EQ(2u, snapshots->size());
  EXPECT_EQ("snapshot-000016-e42", snapshots->at(0).folder);
  const SnapshotSummary& later = snapshots->at(1);
  EXPECT_EQ("snapshot-000018-e43", later.folder);
  EXPECT_TRUE(later.complete.ok()) << later.complete;
  EXPECT_EQ((FilesByFolder{{"snapshot-000017-e42", {"part-3-1-000.cvp"}}}), later.references);
  EXPECT_EQ(files_.at(used_).size() - kPartBlockBytes, later.reused_bytes);
}

// A reference to what is a reference names the folder that holds the bytes.
TEST_F(ReferenceTest, NeverChains) {
  const SmallSnapshot last = SmallSnapshot::MakeAfter(later_, 19, 44);
  ASSERT_TRUE(last.WriteTo(folder_).ok());
  EXPECT_EQ("snapshot-000017-e42", last.manifest.shards(1).folder());
  ASSERT_TRUE(folder_.Remove("snapshot-000018-e43", "MANIFEST").ok());
  const absl::StatusOr<SnapshotReader> reader =
      SnapshotReader::Open(folder_, "snapshot-000019-e44");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); }).ok());
}

TEST_F(DamageTest, AListSaysWhatIsComplete) {
  ASSERT_TRUE(SmallSnapshot::Make(9, 50).WriteTo(folder_).ok());
  const SmallSnapshot half = SmallSnapshot::Make(1000000, 51);
  ASSERT_TRUE(half.WritePart(half.files[0], folder_).ok());
  folder_.AddFile("notes.txt", "not a snapshot");
  folder_.AddFile("snapshot-7/part", "not a snapshot");
  folder_.BytesOf("snapshot-000017-e42/part-3-1-000.cvp").resize(64);
  const absl::StatusOr<std::vector<SnapshotSummary>> snapshots = ListSnapshots(folder_);
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  ASSERT_EQ(3u, snapshots->size());
  const SnapshotSummary& first = snapshots->at(0);
  EXPECT_TRUE(first.complete.ok()) << first.complete;
  EXPECT_EQ("snapshot-000009-e50", first.folder);
  EXPECT_EQ(900u, first.step);
  EXPECT_EQ(2u, first.tables);
  uint64_t bytes = 0;
  for (const auto& [path, content] : SmallSnapshot::Make(9, 50).Bytes()) bytes += content.size();
  EXPECT_EQ(bytes, first.bytes);
  EXPECT_EQ(absl::StatusCode::kDataLoss, snapshots->at(1).complete.code());
  EXPECT_EQ(absl::StatusCode::kNotFound, snapshots->at(2).complete.code());
}

}  // namespace
}  // namespace covey
