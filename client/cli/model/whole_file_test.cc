// SPDX-License-Identifier: Apache-2.0
#include "client/cli/model/whole_file.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include "client/cli/console/text_file.h"

namespace covey::cli {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

int FilesIn(const std::string& folder) {
  int count = 0;
  DIR* entries = opendir(folder.c_str());
  while (const dirent* entry = readdir(entries)) count += entry->d_name[0] != '.';
  closedir(entries);
  return count;
}

class WholeFileTest : public testing::Test {
 protected:
  std::unique_ptr<TemporaryFolder> folder_ = TemporaryFolder::Make().value();
  const std::string path_ = folder_->path() + "/model";
};

TEST_F(WholeFileTest, AppearsWithAllItsContent) {
  auto file = WholeFile::Begin(path_, 6).value();
  ASSERT_TRUE(file->Append(BytesOf("abc")).ok());
  ASSERT_TRUE(file->Append(BytesOf("def")).ok());
  EXPECT_FALSE(ReadTextFile(path_).ok());
  ASSERT_TRUE(file->Finish().ok());
  file.reset();
  EXPECT_EQ(ReadTextFile(path_).value(), "abcdef");
  EXPECT_EQ(FilesIn(folder_->path()), 1);
}

TEST_F(WholeFileTest, LeavesTheOldFileUntilItIsFinished) {
  ASSERT_TRUE(WriteTextFile(path_, "old").ok());
  auto file = WholeFile::Begin(path_, 3).value();
  ASSERT_TRUE(file->Append(BytesOf("new")).ok());
  EXPECT_EQ(ReadTextFile(path_).value(), "old");
  file.reset();
  EXPECT_EQ(ReadTextFile(path_).value(), "old");
  EXPECT_EQ(FilesIn(folder_->path()), 1);
}

TEST_F(WholeFileTest, NamesAFolderThatDoesNotExist) {
  const auto file = WholeFile::Begin(folder_->path() + "none/model", 3);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("none/model"), std::string::npos);
}

TEST_F(WholeFileTest, KnowsAtOnceThatThereIsTooLittleRoom) {
  const auto file = WholeFile::Begin(path_, uint64_t{1} << 60);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(FilesIn(folder_->path()), 0);
}

}  // namespace
}  // namespace covey::cli
