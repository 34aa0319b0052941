// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Lines(const std::vector<std::string>& chunks) {
  std::vector<std::string> lines;
  const auto take = [&](absl::string_view line) { lines.emplace_back(line); };
  LineSplitter splitter;
  for (const std::string& chunk : chunks) splitter.Add(chunk, take);
  splitter.Finish(take);
  return lines;
}

TEST(LineSplitterTest, DoesNotDependOnTheSizesOfChunks) {
  const std::string text = "one\n\nthree\nrest";
  EXPECT_THAT(Lines({text}), ElementsAre("one", "", "three", "rest"));
  std::vector<std::string> bytes;
  for (const char byte : text) bytes.emplace_back(1, byte);
  EXPECT_EQ(Lines(bytes), Lines({text}));
}

TEST(LineSplitterTest, CutsALineThatIsTooLong) {
  const std::string full(LineSplitter::kLineBytesMax, 'x');
  EXPECT_THAT(Lines({full + "\n", "y\n"}), ElementsAre(full, "y"));
  EXPECT_THAT(Lines({full, "\ny\n"}), ElementsAre(full, "y"));
  EXPECT_THAT(Lines({full + "xx\ny\n"}), ElementsAre(full, "xx", "y"));
}

TEST(LineSplitterTest, NothingIsNoLine) { EXPECT_THAT(Lines({"", ""}), ElementsAre()); }

}  // namespace
}  // namespace covey::cli
