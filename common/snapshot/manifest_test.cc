// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/manifest.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/base/random.h"
#include "common/snapshot/manifest_checks.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "proto/replication.pb.h"

namespace covey {
namespace {

using proto::SnapshotManifest;

SnapshotManifest Good() { return SmallSnapshot::Make(17, 42).manifest; }

// Refers to files of snapshot 12.
SnapshotManifest WithReferences() {
  return SmallSnapshot::MakeAfter(SmallSnapshot::Make(12, 40), 17, 42).manifest;
}

std::vector<uint8_t> Encoded() {
  const Buffer bytes = *EncodeManifest(Good());
  return {bytes.bytes().begin(), bytes.bytes().end()};
}

// Makes length and checksums those of the bytes.
void Seal(std::vector<uint8_t>& bytes) {
  const std::span<uint8_t> all = bytes;
  WriteFixed(uint64_t{bytes.size() - 32}, 16, all);
  WriteFixed(Crc32c(all.subspan(32)), 24, all);
  WriteFixed(Crc32c(all.first(28)), 28, all);
}

TEST(ManifestTest, RoundTrip) {
  const std::vector<uint8_t> bytes = Encoded();
  EXPECT_EQ("COVEYMAN", std::string(bytes.begin(), bytes.begin() + 8));
  const absl::StatusOr<SnapshotManifest> decoded = DecodeManifest(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Good().SerializeAsString(), decoded->SerializeAsString());
}

TEST(ManifestTest, FolderNames) {
  EXPECT_EQ("snapshot-000017-e42", SnapshotFolderName(17, 42));
  EXPECT_EQ("snapshot-12345678-e1", SnapshotFolderName(12345678, 1));
  ASSERT_TRUE(ParseSnapshotFolderName("snapshot-000017-e42").has_value());
  EXPECT_EQ(17u, ParseSnapshotFolderName("snapshot-000017-e42")->id);
  EXPECT_EQ(42u, ParseSnapshotFolderName("snapshot-000017-e42")->epoch);
  for (const char* name :
       {"", "snapshot-", "snapshot-17-e42", "snapshot-000017", "snapshot-000017-e", "snapshot-17",
        "snapshot-000017-e042", "snapshot-000017-e42x", "snapshot-+00017-e42", "other-000017-e42",
        "snapshot-000017-e99999999999999999999"}) {
    EXPECT_FALSE(ParseSnapshotFolderName(name).has_value()) << name;
  }
}

TEST(ManifestTest, FolderNamesOfImports) {
  EXPECT_EQ("import-gpt2", ImportFolderName("gpt2"));
  EXPECT_TRUE(IsSnapshotFolderName("import-gpt2"));
  EXPECT_TRUE(IsSnapshotFolderName("snapshot-000017-e42"));
  EXPECT_FALSE(IsImportFolderName("snapshot-000017-e42"));
  for (const std::string& name :
       {std::string("import-"), std::string("import-../x"), std::string("import-a b"),
        "import-" + std::string(256, 'x'), std::string("gpt2")}) {
    EXPECT_FALSE(IsSnapshotFolderName(name)) << name;
  }
}

// An imported snapshot has values alone; its id and epoch are 0.
TEST(ManifestTest, AnImportHoldsValuesAlone) {
  SnapshotManifest imported = Good();
  imported.set_id(0);
  imported.set_epoch(0);
  imported.set_folder("import-small");
  EXPECT_NE(std::string::npos, CheckManifest(imported).ToString().find("array"));
  for (proto::SnapshotShard& shard : *imported.mutable_shards()) {
    shard.mutable_pieces()->DeleteSubrange(1, shard.pieces_size() - 1);
  }
  EXPECT_TRUE(CheckManifest(imported).ok()) << CheckManifest(imported);
  imported.set_epoch(42);
  EXPECT_NE(std::string::npos, CheckManifest(imported).ToString().find("mean import-NAME"));
  imported.set_epoch(0);
  imported.set_folder("snapshot-000000-e0");
  EXPECT_NE(std::string::npos, CheckManifest(imported).ToString().find("mean import-NAME"));
}

TEST(ManifestTest, AnotherMajorVersionIsNamed) {
  std::vector<uint8_t> bytes = Encoded();
  bytes[8] = 4;
  Seal(bytes);
  const absl::Status status = DecodeManifest(bytes).status();
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.ToString().find("has format 4")) << status;
  bytes[8] = 1;
  bytes[10] = 7;
  Seal(bytes);
  EXPECT_TRUE(DecodeManifest(bytes).ok()) << "an unknown minor version is read";
}

TEST(ManifestTest, OnlyAManifestWithReferencesIsOfVersion2) {
  EXPECT_FALSE(HasReferences(Good()));
  EXPECT_EQ(1, Encoded()[8]);
  EXPECT_TRUE(HasReferences(WithReferences()));
  const absl::StatusOr<Buffer> encoded = EncodeManifest(WithReferences());
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  std::vector<uint8_t> bytes = {encoded->bytes().begin(), encoded->bytes().end()};
  EXPECT_EQ(2, bytes[8]);
  const absl::StatusOr<SnapshotManifest> decoded = DecodeManifest(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(WithReferences().SerializeAsString(), decoded->SerializeAsString());
  bytes[8] = 1;
  Seal(bytes);
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(bytes).status()));
}

// Shard 1 of "weights" is an earlier content and two logs.
SnapshotManifest WithLogs() {
  SnapshotManifest manifest = WithReferences();
  const proto::SnapshotShard content = manifest.shards(1);
  const proto::SnapshotShard last = manifest.shards(2);
  manifest.mutable_shards()->RemoveLast();
  proto::SnapshotFile& file = *manifest.mutable_files()->Add();
  file.set_folder(content.folder());
  file.set_name("log-3-1.cvp");
  file.set_bytes(64 + 4 * 128);
  manifest.mutable_files()->SwapElements(1, 2);
  for (uint64_t log = 0; log < 2; ++log) {
    proto::SnapshotShard& entry = *manifest.add_shards();
    entry = content;
    entry.set_file(file.name());
    entry.set_index(content.index() + 10 * (log + 1));
    entry.set_version(content.version() + 8 * (log + 1));
    entry.clear_pieces();
    for (uint64_t i = 0; i < 2; ++i) {
      proto::SnapshotPiece& piece = *entry.add_pieces();
      piece.set_kind(proto::ReplicaPiece::UPDATES);
      piece.set_first(content.index() + 10 * log + 2 + i);
      piece.set_offset(128 + 256 * log + 128 * i);
      piece.set_bytes(64);
    }
  }
  *manifest.add_shards() = last;
  return manifest;
}

TEST(ManifestTest, OnlyAManifestWithLogsIsOfVersion3) {
  EXPECT_FALSE(HasLogs(WithReferences()));
  EXPECT_TRUE(HasLogs(WithLogs()));
  const absl::StatusOr<Buffer> encoded = EncodeManifest(WithLogs());
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  std::vector<uint8_t> bytes = {encoded->bytes().begin(), encoded->bytes().end()};
  EXPECT_EQ(3, bytes[8]);
  EXPECT_TRUE(DecodeManifest(bytes).ok());
  bytes[8] = 2;
  Seal(bytes);
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(bytes).status()));
}

TEST(ManifestTest, ALogFollowsTheContentOfItsShard) {
  const SnapshotManifest manifest = WithLogs();
  const std::vector<ShardEntries> shards = EntriesByShard(manifest);
  ASSERT_EQ(3u, shards.size());
  EXPECT_EQ(0u, shards[0].logs.size());
  EXPECT_EQ(&manifest.shards(1), shards[1].content);
  EXPECT_EQ(2u, shards[1].logs.size());
  EXPECT_EQ(&manifest.shards(3), &shards[1].newest());
  EXPECT_EQ(&manifest.shards(3), &EntriesOf(manifest, 1, 1).newest());
  EXPECT_EQ(&manifest.shards(4), &EntriesOf(manifest, 2, 0).newest());
}

TEST(ManifestTest, IntactBytesOfAnythingElseNeverCrash) {
  const std::vector<uint8_t> good = Encoded();
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (uint64_t flips = 1 + random.Below(3); flips > 0; --flips) {
      bytes[32 + random.Below(bytes.size() - 32)] ^= static_cast<uint8_t>(1 + random.Below(255));
    }
    if (random.Chance(0.1)) bytes.resize(32 + random.Below(bytes.size() - 32));
    Seal(bytes);
    const absl::Status status = DecodeManifest(bytes).status();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kDataLoss) << status;
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 10000);
}

struct Wrong {
  const char* message;
  std::function<void(SnapshotManifest&)> change;
};

// Each change makes the manifest one that is refused, in these words.
void ExpectEachRefused(const std::vector<Wrong>& wrongs, const SnapshotManifest& good) {
  ASSERT_TRUE(CheckManifest(good).ok()) << CheckManifest(good);
  for (size_t i = 0; i < wrongs.size(); ++i) {
    SnapshotManifest manifest = good;
    wrongs[i].change(manifest);
    const absl::Status status = CheckManifest(manifest);
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, status.code()) << i << ": " << wrongs[i].message;
    EXPECT_NE(std::string::npos, status.ToString().find(wrongs[i].message)) << i << ": " << status;
    EXPECT_EQ(status.code(), EncodeManifest(manifest).status().code());
  }
}

TEST(ManifestTest, EveryPartFitsTheOthers) {
  const auto tables = [](SnapshotManifest& m) {
    return m.mutable_state()->mutable_view()->mutable_tables();
  };
  const std::vector<Wrong> wrongs = {
      {"id 0 and epoch 42", [](auto& m) { m.set_id(0); }},
      {"mean snapshot-000018-e42", [](auto& m) { m.set_id(18); }},
      {"mean snapshot-000017-e43", [](auto& m) { m.set_epoch(43); }},
      {"folder '../x'", [](auto& m) { m.set_folder("../x"); }},
      {"the cluster's state",
       [&](auto& m) { tables(m)->Mutable(0)->mutable_shards()->RemoveLast(); }},
      {"two tables are named",
       [&](auto& m) { tables(m)->Mutable(1)->mutable_spec()->set_name("weights"); }},
      {"table 'weights'",
       [&](auto& m) {
         tables(m)->Mutable(0)->mutable_spec()->mutable_optimizer()->set_momentum(2);
       }},
      {"1 of 2 arrays",
       [&](auto& m) { m.mutable_shards(0)->mutable_pieces()->DeleteSubrange(1, 1); }},
      {"2 of 3 arrays",
       [&](auto& m) {
         tables(m)->Mutable(0)->mutable_spec()->mutable_optimizer()->set_kind(
             proto::Optimizer::ADAM);
       }},
      {"does not continue array 1 of 1",
       [&](auto& m) {
         tables(m)->Mutable(0)->mutable_spec()->mutable_optimizer()->set_kind(
             proto::Optimizer::SGD);
       }},
      {"group 9", [](auto& m) { m.mutable_groups(0)->set_group(9); }},
      {"group 1 follows group 1", [](auto& m) { *m.add_groups() = m.groups(0); }},
      {"none of the snapshot's view", [](auto& m) { m.mutable_groups(0)->set_step(~uint64_t{0}); }},
      {"cannot be a name", [](auto& m) { m.mutable_files(0)->set_name("../part"); }},
      {"out of order", [](auto& m) { m.mutable_files(1)->set_name(m.files(0).name()); }},
      {"out of order", [](auto& m) { m.mutable_files()->SwapElements(0, 1); }},
      {"out of order", [](auto& m) { m.mutable_files(0)->set_name("MANIFEST"); }},
      {"which no part file has", [](auto& m) { m.mutable_files(0)->set_bytes(100); }},
      {"which no part file has", [](auto& m) { m.mutable_files(0)->set_bytes(0); }},
      {"which no part file has", [](auto& m) { m.mutable_files(0)->set_bytes(uint64_t{1} << 60); }},
      {"is not inside", [](auto& m) { m.mutable_files(0)->set_bytes(m.files(0).bytes() - 64); }},
      {"is missing", [](auto& m) { m.mutable_shards()->RemoveLast(); }},
      {"is missing", [](auto& m) { m.mutable_shards()->SwapElements(0, 1); }},
      {"is missing", [](auto& m) { m.mutable_shards(1)->set_shard(0); }},
      {"is none of the snapshot's tables", [](auto& m) { *m.add_shards() = m.shards(0); }},
      {"generation 0", [](auto& m) { m.mutable_shards(0)->set_generation(0); }},
      {"samples cannot be", [](auto& m) { m.mutable_shards(0)->set_samples(~uint64_t{0}); }},
      {"is not in the list", [](auto& m) { m.mutable_shards(0)->set_file("part-9-9-000.cvp"); }},
      {"0 of 2 arrays", [](auto& m) { m.mutable_shards(0)->clear_pieces(); }},
      {"0 records", [](auto& m) { m.mutable_shards(0)->mutable_pieces()->RemoveLast(); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_bytes(68); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_bytes(60); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_bytes(0); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_bytes(62); }},
      {"more than",
       [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_bytes(~uint64_t{0}); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_first(4); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_slot(1); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(1)->set_slot(1); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(1)->set_slot(~0u); }},
      {"does not continue", [](auto& m) { m.mutable_shards(0)->mutable_pieces(1)->set_kind(9); }},
      {"arrays", [](auto& m) { m.mutable_shards(0)->mutable_pieces()->SwapElements(1, 2); }},
      {"is not inside", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_offset(129); }},
      {"is not inside", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_offset(64); }},
      {"is not inside",
       [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_offset(m.files(0).bytes()); }},
      {"is not inside",
       [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_offset(~uint64_t{63}); }},
      {"overlap",
       [](auto& m) {
         m.mutable_shards(0)->mutable_pieces(0)->set_offset(m.shards(0).pieces(1).offset());
       }},
      {"overlap", [](auto& m) { m.mutable_shards(0)->mutable_pieces(0)->set_offset(192); }},
  };
  ExpectEachRefused(wrongs, Good());
}

TEST(ManifestTest, ReferencesAreToEarlierSnapshots) {
  const auto refer_to = [](SnapshotManifest& m, const std::string& folder) {
    m.mutable_files(1)->set_folder(folder);
    for (int i : {1, 2}) m.mutable_shards(i)->set_folder(folder);
  };
  ExpectEachRefused(
      {
          {"no earlier snapshot", [&](auto& m) { refer_to(m, "snapshot-000017-e42"); }},
          {"no earlier snapshot", [&](auto& m) { refer_to(m, "snapshot-000018-e42"); }},
          {"no earlier snapshot", [&](auto& m) { refer_to(m, "snapshot-000016-e43"); }},
          {"no earlier snapshot", [&](auto& m) { refer_to(m, "import-gpt2"); }},
          {"no earlier snapshot", [&](auto& m) { refer_to(m, "../x"); }},
          {"is not in the list", [](auto& m) { m.mutable_shards(1)->clear_folder(); }},
          {"is not in the list",
           [](auto& m) { m.mutable_shards(0)->set_folder("snapshot-000012-e40"); }},
          {"is not inside", [](auto& m) { m.mutable_files(1)->set_bytes(128); }},
          {"out of order", [](auto& m) { m.mutable_files()->SwapElements(0, 1); }},
          {"no shard is in file part-3-1-001.cvp of snapshot-000012-e40",
           [](auto& m) {
             *m.add_files() = m.files(1);
             m.mutable_files(2)->set_name("part-3-1-001.cvp");
           }},
          {"overlap",
           [](auto& m) {
             m.mutable_shards(2)->mutable_pieces(0)->set_offset(m.shards(1).pieces(0).offset());
           }},
      },
      WithReferences());
}

TEST(ManifestTest, LogsFitTheirShards) {
  ExpectEachRefused(
      {
          {"does not follow", [](auto& m) { m.mutable_shards(2)->set_generation(99); }},
          {"does not follow", [](auto& m) { m.mutable_shards(2)->set_index(m.shards(1).index()); }},
          {"does not follow", [](auto& m) { m.mutable_shards()->SwapElements(2, 3); }},
          {"does not follow", [](auto& m) { m.mutable_shards(3)->set_version(1); }},
          {"does not follow", [](auto& m) { m.mutable_shards(3)->set_samples(1); }},
          {"does not follow", [](auto& m) { m.mutable_shards(3)->set_samples(~uint64_t{0}); }},
          {"does not continue", [](auto& m) { m.mutable_shards()->SwapElements(1, 2); }},
          {"is missing", [](auto& m) { m.mutable_shards(3)->clear_pieces(); }},
          {"no folder", [](auto& m) { m.mutable_shards(2)->clear_folder(); }},
          {"is not of a log", [](auto& m) { m.mutable_shards(2)->mutable_pieces(1)->set_kind(3); }},
          {"is not of a log", [](auto& m) { m.mutable_shards(2)->mutable_pieces(1)->set_slot(1); }},
          {"is not of a log",
           [](auto& m) { m.mutable_shards(2)->mutable_pieces(0)->set_bytes(0); }},
          {"is not of a log",
           [](auto& m) { m.mutable_shards(2)->mutable_pieces(0)->set_bytes(~uint64_t{0}); }},
          {"is not of a log",
           [](auto& m) { m.mutable_shards(2)->mutable_pieces()->SwapElements(0, 1); }},
          {"is not of a log",
           [](auto& m) { m.mutable_shards(2)->mutable_pieces(0)->set_first(m.shards(1).index()); }},
          {"is not of a log",
           [](auto& m) {
             m.mutable_shards(2)->mutable_pieces(1)->set_first(m.shards(2).index() + 1);
           }},
          {"is not inside",
           [](auto& m) { m.mutable_shards(2)->mutable_pieces(0)->set_offset(64 + 4 * 128); }},
          {"overlap",
           [](auto& m) {
             m.mutable_shards(3)->mutable_pieces(0)->set_offset(m.shards(2).pieces(0).offset());
           }},
          {"more than 32 logs",
           [](auto& m) {
             const proto::SnapshotShard log = m.shards(3);
             proto::SnapshotShard last = m.shards(4);
             m.mutable_shards()->RemoveLast();
             for (int i = 1; i < 40; ++i) {
               proto::SnapshotShard& more = *m.add_shards();
               more = log;
               more.set_index(log.index() + 10 * static_cast<uint64_t>(i));
               more.mutable_pieces()->RemoveLast();
               more.mutable_pieces(0)->set_first(more.index());
             }
             *m.add_shards() = last;
           }},
      },
      WithLogs());
}

}  // namespace
}  // namespace covey
