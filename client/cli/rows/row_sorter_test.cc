// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/row_sorter.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "client/cli/console/text_file.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

// The parameter is the memory.
class SortedRowsTest : public ::testing::TestWithParam<size_t> {
 protected:
  const std::unique_ptr<TemporaryFolder> folder_ = *TemporaryFolder::Make();
};

TEST_P(SortedRowsTest, GivesRowsByKey) {
  const size_t memory = GetParam();
  RowSorter sorter({.folder = folder_->path(), .width = 3, .memory_bytes = memory});
  Random random(memory);
  std::map<uint64_t, Floats> expected;
  while (expected.size() < 5000) {
    std::vector<uint64_t> keys;
    Floats rows;
    for (uint64_t i = random.Below(200); i > 0; --i) {
      const uint64_t key = expected.empty() ? ~uint64_t{0} : random.Next();
      const Floats row = {static_cast<float>(keys.size()), 2, static_cast<float>(key % 1000)};
      if (!expected.emplace(key, row).second) continue;
      keys.push_back(key);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    ASSERT_TRUE(sorter.Add(keys, rows).ok());
  }
  EXPECT_EQ(sorter.size(), expected.size());
  EXPECT_EQ(sorter.runs() > 1, memory < 100'000);
  auto next = expected.begin();
  const absl::Status sorted = sorter.Sort([&](uint64_t key, std::span<const float> row) {
    EXPECT_EQ(key, next->first);
    EXPECT_EQ(Floats(row.begin(), row.end()), next->second);
    ++next;
    return absl::OkStatus();
  });
  EXPECT_TRUE(sorted.ok()) << sorted;
  EXPECT_TRUE(next == expected.end());
}

TEST_P(SortedRowsTest, NoticesAKeyThatComesTwice) {
  RowSorter sorter({.folder = folder_->path(), .width = 1, .memory_bytes = GetParam()});
  std::vector<uint64_t> keys(3000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 7 % 2999;  // the last one is the first
  ASSERT_TRUE(sorter.Add(keys, Floats(keys.size())).ok());
  const absl::Status twice =
      sorter.Sort([](uint64_t, std::span<const float>) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsDataLoss(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("key 0 came twice"));
}

INSTANTIATE_TEST_SUITE_P(Memory, SortedRowsTest, ::testing::Values(1000, 20'000, 10'000'000));

TEST(RowSorterTest, HasNoRowsToBeginWith) {
  RowSorter sorter({.folder = "/nowhere", .width = 1});
  EXPECT_TRUE(sorter
                  .Sort([](uint64_t, std::span<const float>) {
                    return absl::InternalError("there is none");
                  })
                  .ok());
}

TEST(RowSorterTest, NamesTheFolderThatItCannotUse) {
  RowSorter sorter({.folder = "/proc/none", .width = 1, .memory_bytes = 1});
  const absl::Status added = sorter.Add(std::vector<uint64_t>{1, 2}, Floats{1, 2});
  EXPECT_THAT(std::string(added.message()), HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace covey::cli
