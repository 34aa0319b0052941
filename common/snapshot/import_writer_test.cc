// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/import_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/snapshot/manifest.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

constexpr char kFolder[] = "import-gpt2";

float ValueAt(uint64_t element) { return static_cast<float>(element % 100'003); }

absl::Status Ramp(uint64_t first, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = ValueAt(first + i);
  return absl::OkStatus();
}

absl::Status NoProblem(uint64_t, uint64_t) { return absl::OkStatus(); }

// Two shards of several pieces; and a table of one element.
const std::vector<uint64_t> kLarge = {17, kImportPieceElements + 3};

void Import(Folder& store) {
  ImportWriter writer(store, kFolder, 1'700'000'000'000);
  ASSERT_TRUE(writer.Add(ImportedTable("h.0/weight", kLarge), Ramp).ok());
  const std::vector<uint64_t> one = {1};
  ASSERT_TRUE(writer.Add(ImportedTable("scale", one), Ramp).ok());
  const absl::StatusOr<uint64_t> bytes = writer.Finish();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, SnapshotReader::Open(store, kFolder)->bytes());
}

TEST(ImportWriterTest, WhatItWritesIsRead) {
  MemoryFolder store;
  Import(store);
  const absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(store, kFolder);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->Verify(NoProblem).ok());
  EXPECT_TRUE(IsImported(reader->manifest()));
  ASSERT_EQ(reader->manifest().shards_size(), 3);
  uint64_t next = 0;
  for (int shard : {0, 1}) {
    for (const proto::SnapshotPiece& piece : reader->manifest().shards(shard).pieces()) {
      const absl::StatusOr<Buffer> values =
          reader->ReadPiece(reader->manifest().shards(shard), piece);
      ASSERT_TRUE(values.ok()) << values.status();
      for (const float value : values->As<float>()) ASSERT_EQ(value, ValueAt(next++));
    }
  }
  EXPECT_EQ(next, kLarge[0] * kLarge[1]);
}

TEST(ImportWriterTest, ItIsListedAndNeverTheNewest) {
  MemoryFolder store;
  EXPECT_TRUE(absl::IsNotFound(FindSnapshot(store, kNewestSnapshot).status()));
  Import(store);
  EXPECT_TRUE(absl::IsNotFound(FindSnapshot(store, kNewestSnapshot).status()));
  const auto listed = ListSnapshots(store);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].folder, kFolder);
  EXPECT_TRUE((*listed)[0].complete.ok());
  EXPECT_EQ((*listed)[0].tables, 2u);
  EXPECT_EQ((*listed)[0].id, 0u);
  EXPECT_EQ(FindSnapshot(store, kFolder).value(), kFolder);
  EXPECT_TRUE(absl::IsNotFound(FindSnapshot(store, "0").status()));
}

TEST(ImportWriterTest, ItIsNotCompleteBeforeItsEnd) {
  MemoryFolder store;
  ImportWriter writer(store, kFolder, 0);
  ASSERT_TRUE(writer.Add(ImportedTable("weight", kLarge), Ramp).ok());
  EXPECT_TRUE(absl::IsNotFound(SnapshotReader::Open(store, kFolder).status()));
  const auto fails = [](uint64_t, std::span<float>) { return absl::DataLossError("cut off"); };
  EXPECT_TRUE(absl::IsDataLoss(writer.Add(ImportedTable("bias", kLarge), fails)));
}

TEST(ImportWriterTest, DamageIsFound) {
  MemoryFolder store;
  Import(store);
  store.BytesOf("import-gpt2/values.cvp")[200] ^= 1;
  const absl::Status status = SnapshotReader::Open(store, kFolder)->Verify(NoProblem);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message().substr(0, 34), "import-gpt2/values.cvp, offset 64:");
}

TEST(ImportWriterTest, ATableThatCannotBeIsRefused) {
  MemoryFolder store;
  ImportWriter writer(store, kFolder, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Add(ImportedTable("../ x", kLarge), Ramp)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Add(ImportedTable("scalar", {}), Ramp)));
}

}  // namespace
}  // namespace covey
