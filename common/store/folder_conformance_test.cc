// SPDX-License-Identifier: Apache-2.0

// What every store does: the promises of folder.h, over a file system and over memory.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "common/store/disk_folder.h"
#include "common/store/folder.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

enum class Kind { kDisk, kMemory };

Folder::Bytes BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class FolderConformance : public testing::TestWithParam<Kind> {
 protected:
  FolderConformance() {
    if (GetParam() == Kind::kMemory) {
      folder_ = std::make_unique<MemoryFolder>();
      return;
    }
    std::string path = testing::TempDir() + "/store-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    path += "/store";
    EXPECT_EQ(DiskFolder::Open(path, DiskFolder::Missing::kIsError).status().code(),
              absl::StatusCode::kNotFound);
    folder_ = *DiskFolder::Open(path, DiskFolder::Missing::kIsCreated);
  }

  absl::Status Append(const std::string& path, uint64_t offset, const std::string& bytes) {
    const Folder::Bytes part = BytesOf(bytes);
    return folder_->Append(path, offset, {&part, 1});
  }
  // Reads a whole file; "CODE" when that fails.
  std::string Content(const std::string& path, uint64_t offset = 0, uint64_t bytes = 0) {
    const absl::StatusOr<Buffer> read = folder_->Read(path, offset, bytes);
    if (!read.ok()) return absl::StatusCodeToString(read.status().code());
    return {reinterpret_cast<const char*>(read->data()), read->size()};
  }
  // "a:3 b/", or "CODE".
  std::string Listing(const std::string& path) {
    const absl::StatusOr<std::vector<FolderEntry>> entries = folder_->List(path);
    if (!entries.ok()) return absl::StatusCodeToString(entries.status().code());
    std::string text;
    for (const FolderEntry& entry : *entries) {
      text += (text.empty() ? "" : " ") + entry.name +
              (entry.is_folder ? "/" : ":" + std::to_string(entry.bytes));
    }
    return text;
  }

  std::unique_ptr<Folder> folder_;
};

TEST_P(FolderConformance, AppendsSyncsAndReads) {
  const std::string one = "one";
  const std::string empty;
  const std::string two = "two!";
  const std::vector<Folder::Bytes> parts = {BytesOf(one), BytesOf(empty), BytesOf(two)};
  ASSERT_TRUE(folder_->Append("s/part", 0, parts).ok());
  EXPECT_EQ("onetwo!", Content("s/part"));
  ASSERT_TRUE(Append("s/part", 7, "more").ok());
  ASSERT_TRUE(folder_->Sync("s/part").ok());
  EXPECT_EQ("onetwo!more", Content("s/part"));
  EXPECT_EQ("two!", Content("s/part", 3, 4));
  EXPECT_EQ("more", Content("s/part", 7));
  EXPECT_EQ("", Content("s/part", 11));
  EXPECT_EQ("OUT_OF_RANGE", Content("s/part", 3, 9));
  EXPECT_EQ("OUT_OF_RANGE", Content("s/part", 12));
  EXPECT_EQ("OUT_OF_RANGE", Content("s/part", 1, ~uint64_t{0}));
  EXPECT_EQ("NOT_FOUND", Content("s/other"));
  EXPECT_EQ("NOT_FOUND", Content("other/part"));
  EXPECT_EQ("FAILED_PRECONDITION", Content("s"));
}

TEST_P(FolderConformance, AFileGrowsAtItsEndUntilItIsSynced) {
  ASSERT_TRUE(Append("a", 0, "").ok());
  ASSERT_TRUE(Append("a", 0, "12").ok());
  const absl::Status gap = Append("a", 3, "4");
  EXPECT_EQ(absl::StatusCode::kOutOfRange, gap.code());
  EXPECT_NE(std::string::npos, gap.ToString().find("it has 2 bytes")) << gap;
  EXPECT_EQ(absl::StatusCode::kOutOfRange, Append("a", 0, "4").code());
  ASSERT_TRUE(folder_->Sync("a").ok());
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, Append("a", 2, "3").code());
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, folder_->Sync("a").code());
  EXPECT_EQ(absl::StatusCode::kAlreadyExists, Append("a", 0, "3").code());
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, folder_->Sync("none").code());
  EXPECT_EQ("12", Content("a"));
}

TEST_P(FolderConformance, PublishesWholeFilesOnce) {
  ASSERT_TRUE(folder_->Publish("s/MANIFEST", BytesOf("all of it")).ok());
  EXPECT_EQ("all of it", Content("s/MANIFEST"));
  EXPECT_EQ("MANIFEST:9", Listing("s"));
  EXPECT_EQ(absl::StatusCode::kAlreadyExists,
            folder_->Publish("s/MANIFEST", BytesOf("other")).code());
  EXPECT_EQ("all of it", Content("s/MANIFEST"));
}

TEST_P(FolderConformance, PublishesOverWhatACrashLeft) {
  ASSERT_TRUE(Append("s/MANIFEST.new", 0, "half").ok());
  ASSERT_TRUE(folder_->Sync("s/MANIFEST.new").ok());
  ASSERT_TRUE(folder_->Publish("s/MANIFEST", BytesOf("whole")).ok());
  EXPECT_EQ("MANIFEST:5", Listing("s"));
}

TEST_P(FolderConformance, ListsInOrderOfName) {
  EXPECT_EQ("", Listing(""));
  EXPECT_EQ("NOT_FOUND", Listing("s"));
  ASSERT_TRUE(Append("s/b", 0, "12").ok());
  ASSERT_TRUE(Append("s/a", 0, "").ok());
  ASSERT_TRUE(Append("r", 0, "1").ok());
  EXPECT_EQ("r:1 s/", Listing(""));
  EXPECT_EQ("a:0 b:2", Listing("s"));
}

TEST_P(FolderConformance, Removes) {
  for (const char* path : {"s/a", "s/MANIFEST", "s/z", "r"}) {
    ASSERT_TRUE(Append(path, 0, "1").ok());
    ASSERT_TRUE(folder_->Sync(path).ok());
  }
  ASSERT_TRUE(folder_->Remove("r", "").ok());
  EXPECT_EQ(absl::StatusCode::kNotFound, folder_->Remove("r", "").code());
  ASSERT_TRUE(folder_->Remove("s/z", "").ok());
  EXPECT_EQ("MANIFEST:1 a:1", Listing("s"));
  ASSERT_TRUE(folder_->Remove("s", "MANIFEST").ok());
  EXPECT_EQ("", Listing(""));
  EXPECT_EQ(absl::StatusCode::kNotFound, folder_->Remove("s", "MANIFEST").code());
  // The names are free again, also while the file was open.
  ASSERT_TRUE(Append("s/a", 0, "new").ok());
  ASSERT_TRUE(folder_->Remove("s", "MANIFEST").ok());
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, folder_->Sync("s/a").code());
  ASSERT_TRUE(Append("s/a", 0, "newer").ok());
  ASSERT_TRUE(folder_->Sync("s/a").ok());
  EXPECT_EQ("newer", Content("s/a"));
}

TEST_P(FolderConformance, AFolderGoesWithItsLastFile) {
  for (const char* path : {"s/a", "s/b", "t/a"}) {
    ASSERT_TRUE(Append(path, 0, "1").ok());
    ASSERT_TRUE(folder_->Sync(path).ok());
  }
  ASSERT_TRUE(folder_->Remove("s/a", "").ok());
  EXPECT_EQ("s/ t/", Listing(""));
  ASSERT_TRUE(folder_->Remove("s/b", "").ok());
  EXPECT_EQ("t/", Listing(""));
  ASSERT_TRUE(Append("s/b", 0, "2").ok());
  EXPECT_EQ("b:1", Listing("s"));
}

TEST_P(FolderConformance, RemovesAllButSome) {
  for (const char* path : {"s/a", "s/MANIFEST", "s/z"}) {
    ASSERT_TRUE(Append(path, 0, "1").ok());
    ASSERT_TRUE(folder_->Sync(path).ok());
  }
  ASSERT_TRUE(folder_->Remove("s", "MANIFEST", {"MANIFEST", "z", "none"}).ok());
  EXPECT_EQ("z:1", Listing("s"));
  ASSERT_TRUE(folder_->Remove("s", "MANIFEST", {"z"}).ok());
  EXPECT_EQ("1", Content("s/z"));
  ASSERT_TRUE(folder_->Remove("s", "", {"none"}).ok());
  EXPECT_EQ("", Listing(""));
}

TEST_P(FolderConformance, RefusesPathsThatLeadElsewhere) {
  const std::string long_name(kNameBytesMax + 1, 'a');
  for (const std::string& path :
       {std::string("/a"), std::string(".."), std::string("../a"), std::string("a/.."),
        std::string("a/../b"), std::string("a/b/c"), std::string("a/"), std::string("a//b"),
        std::string(".a"), std::string("-a"), std::string("a b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), long_name}) {
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, Append(path, 0, "1").code()) << path;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, folder_->Sync(path).code()) << path;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, folder_->Publish(path, {}).code()) << path;
    EXPECT_EQ("INVALID_ARGUMENT", Content(path)) << path;
    EXPECT_EQ("INVALID_ARGUMENT", Listing(path)) << path;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, folder_->Remove(path, "").code()) << path;
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, folder_->Remove("a", path).code()) << path;
  }
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, Append("", 0, "1").code());
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, folder_->Remove("", "").code());
  EXPECT_EQ("", Listing(""));
}

TEST_P(FolderConformance, BoundsOpenFiles) {
  for (size_t i = 0; i < kStoreOpenFilesMax; ++i) {
    ASSERT_TRUE(Append("f" + std::to_string(i), 0, "1").ok());
  }
  EXPECT_EQ(absl::StatusCode::kResourceExhausted, Append("one-more", 0, "1").code());
  ASSERT_TRUE(folder_->Sync("f0").ok());
  EXPECT_TRUE(Append("one-more", 0, "1").ok());
}

INSTANTIATE_TEST_SUITE_P(Stores, FolderConformance, testing::Values(Kind::kDisk, Kind::kMemory),
                         [](const auto& kind) {
                           return kind.param == Kind::kDisk ? "Disk" : "Memory";
                         });

}  // namespace
}  // namespace covey
