// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/new_folder.h"

#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "client/cli/console/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class NewFolderTest : public ::testing::Test {
 protected:
  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::unique_ptr<TemporaryFolder> folder_ = *TemporaryFolder::Make();
  const std::string path_ = folder_->path() + "/rows";
};

TEST_F(NewFolderTest, AppearsWhenItIsWhole) {
  auto folder = *NewFolder::Begin(path_ + "//");
  FolderFile file = *FolderFile::Begin(*folder, "a.npy", 3 << 20);
  std::string content;
  for (int i = 0; i < 300'000; ++i) {
    const std::string part = "part " + std::to_string(i);
    ASSERT_TRUE(file.Append(BytesOf(part)).ok());
    content += part;
  }
  const FolderFile::Summary summary = *file.Finish();
  EXPECT_EQ(summary.name, "a.npy");
  EXPECT_EQ(summary.bytes, content.size());
  EXPECT_EQ(summary.crc32, crc32(0, BytesOf(content).data(), content.size()));
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(folder->Finish().ok());
  folder.reset();
  EXPECT_EQ(*ReadTextFile(path_ + "/a.npy"), content);
  EXPECT_THAT(Entries(), SizeIs(1));
}

TEST_F(NewFolderTest, LeavesNothingHalfWritten) {
  {
    const auto folder = *NewFolder::Begin(path_);
    FolderFile file = *FolderFile::Begin(*folder, "a.npy", 0);
    ASSERT_TRUE(file.Append(BytesOf("x")).ok());
    EXPECT_THAT(Entries(), SizeIs(1));
  }
  EXPECT_THAT(Entries(), SizeIs(0));
}

TEST_F(NewFolderTest, ReplacesNothing) {
  ASSERT_TRUE(MakeFolder(path_).ok());
  const absl::Status there = NewFolder::Begin(path_).status();
  EXPECT_TRUE(absl::IsAlreadyExists(there));
  EXPECT_THAT(std::string(there.message()), HasSubstr("remove it, or choose another"));
  EXPECT_THAT(std::string(NewFolder::Begin(folder_->path() + "/no/rows").status().message()),
              HasSubstr("/no/rows"));
  // It was made meanwhile, with something in it.
  const std::string other = folder_->path() + "/other";
  auto folder = *NewFolder::Begin(other);
  ASSERT_TRUE(MakeFolder(other + "/inside").ok());
  EXPECT_FALSE(folder->Finish().ok());
  folder.reset();
  EXPECT_THAT(Entries(), SizeIs(2));
}

}  // namespace
}  // namespace covey::cli
