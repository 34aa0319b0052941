// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BlockTest, NamesAndLabelsAreUnique) {
  std::set<std::string> names, rows;
  for (const Block& block : AllBlocks()) {
    EXPECT_TRUE(names.insert(block.name).second) << block.name;
    // Figures of two blocks would otherwise be taken for each other.
    const std::string row = std::to_string(static_cast<int>(block.operations)) + block.label;
    EXPECT_TRUE(rows.insert(row).second) << block.name;
    if (block.baseline_label == nullptr) continue;
    EXPECT_TRUE(rows.insert(BaselineOf(block).label).second) << block.name;
    EXPECT_EQ(BaselineOf(block).servers, block.servers);
    EXPECT_THAT(DescribeBlocks(), HasSubstr(block.name));
  }
}

TEST(BlockTest, AreChosenByNameOnceEach) {
  const auto blocks = ParseBlocks("mixed,latency,mixed");
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ(BlockNames(*blocks), "mixed,latency");
  EXPECT_EQ(BlockNames(*ParseBlocks("default")), "memory,latency,rates");
}

TEST(BlockTest, AllLeavesOutWhatNeedsMuchMemory) {
  EXPECT_THAT(BlockNames(*ParseBlocks("all")), ::testing::Not(HasSubstr("large")));
  EXPECT_EQ(ParseBlocks("all")->size() + 1, AllBlocks().size());
}

TEST(BlockTest, AWrongNameIsAnsweredWithTheNearest) {
  EXPECT_THAT(std::string(ParseBlocks("latncy").status().message()),
              HasSubstr("did you mean latency?"));
  EXPECT_FALSE(ParseBlocks("").ok());
}

TEST(BlockTest, SizesAreThoseThatTheBlockMeasures) {
  EXPECT_THAT(SizesOf({.name = "a", .about = "", .bytes_min = 100}, {4, 100, 4096}),
              ElementsAre(100, 4096));
  EXPECT_THAT(SizesOf({.name = "a", .about = "", .only_bytes = 7}, {4, 100}), ElementsAre(7));
}

}  // namespace
}  // namespace covey::cli
