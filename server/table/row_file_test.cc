// SPDX-License-Identifier: Apache-2.0
#include "server/table/row_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;

constexpr size_t kChunk = 2 << 20;

// The blocks on the disk of the only file without a name that this process has open.
uint64_t BlocksOfTheFile() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat file;
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (gone || target.find("covey-rows-") == std::string::npos) continue;
    if (stat(entry.path().c_str(), &file) == 0) return static_cast<uint64_t>(file.st_blocks);
  }
  return 0;
}

TEST(RowFileTest, KeepsWhatIsWritten) {
  const std::unique_ptr<RowFile> rows = *RowFile::Create(testing::TempDir());
  std::vector<Buffer> chunks;
  for (uint8_t i = 0; i < 20; ++i) {
    chunks.push_back(rows->NewChunk(kChunk));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(chunks.back().data()) % 64, 0);
    std::fill_n(chunks.back().MutableData(), kChunk, i);
  }
  for (uint8_t i = 0; i < 20; ++i) {
    EXPECT_EQ(std::count(chunks[i].data(), chunks[i].data() + kChunk, i), kChunk);
  }
}

TEST(RowFileTest, LeavesNoNameBehind) {
  const std::string folder = testing::TempDir() + "/empty";
  std::filesystem::create_directory(folder);
  const std::unique_ptr<RowFile> rows = *RowFile::Create(folder);
  const Buffer chunk = rows->NewChunk(kChunk);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(RowFileTest, GivesTheRoomOfDroppedChunksBack) {
  const std::unique_ptr<RowFile> rows = *RowFile::Create(testing::TempDir());
  Buffer chunk = rows->NewChunk(kChunk);
  const Buffer other = rows->NewChunk(kChunk);
  EXPECT_GE(BlocksOfTheFile() * 512, 2 * kChunk);
  std::thread([dropped = std::move(chunk)] {}).join();
  EXPECT_LT(BlocksOfTheFile() * 512, 2 * kChunk);
}

TEST(RowFileTest, ChunksOutliveIt) {
  std::unique_ptr<RowFile> rows = *RowFile::Create(testing::TempDir());
  Buffer chunk = rows->NewChunk(kChunk);
  rows = nullptr;
  std::fill_n(chunk.MutableData(), kChunk, uint8_t{7});
  EXPECT_EQ(chunk.data()[kChunk - 1], 7);
}

TEST(RowFileTest, TakesMoreThanOneRegion) {
  const std::unique_ptr<RowFile> rows = *RowFile::Create(testing::TempDir());
  // So large that the second one does not fit beside the first.
  constexpr size_t kLarge = size_t{600} << 20;
  Buffer first = rows->NewChunk(kLarge);
  Buffer second = rows->NewChunk(kLarge);
  first.MutableData()[kLarge - 1] = 1;
  second.MutableData()[0] = 2;
  EXPECT_EQ(first.data()[kLarge - 1], 1);
  EXPECT_EQ(second.data()[0], 2);
}

TEST(RowFileTest, UsesMemoryWhereTheFileMayNotGrow) {
  const std::unique_ptr<RowFile> rows = *RowFile::Create(testing::TempDir());
  const Buffer in_file = rows->NewChunk(kChunk);
  const uint64_t blocks = BlocksOfTheFile();
  signal(SIGXFSZ, SIG_IGN);
  const rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  // More than is left of what was mapped at once.
  Buffer in_memory = rows->NewChunk(size_t{1} << 30);
  const rlimit any = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &any), 0);
  std::fill_n(in_memory.MutableData(), kChunk, uint8_t{7});
  EXPECT_EQ(BlocksOfTheFile(), blocks);
}

TEST(RowFileTest, SaysWhyAFolderDoesNotServe) {
  EXPECT_THAT(RowFile::Create("/nowhere").status().message(),
              HasSubstr("rows in /nowhere: make a file: No such file or directory; choose"));
}

}  // namespace
}  // namespace covey::server
