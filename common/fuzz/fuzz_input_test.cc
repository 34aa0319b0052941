// SPDX-License-Identifier: Apache-2.0
#include "common/fuzz/fuzz_input.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace covey {
namespace {

std::vector<std::string> FramesOf(const std::string& input, size_t parts_max) {
  std::vector<std::string> frames;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(input.data());
  for (const Buffer& frame : FuzzFrames({bytes, input.size()}, parts_max)) {
    frames.emplace_back(FuzzText(frame.bytes()));
  }
  return frames;
}

TEST(FuzzInputTest, PartsComeBack) {
  const std::vector<std::string> parts = {"head", "", std::string(300, 'x'), "the rest"};
  EXPECT_EQ(FramesOf(JoinFuzzParts(parts), 4), parts);
  EXPECT_EQ(FramesOf(JoinFuzzParts(parts), 9), parts);
  EXPECT_EQ(FramesOf(JoinFuzzParts(parts), 1), std::vector<std::string>{"head"});
}

TEST(FuzzInputTest, AnyBytesAreParts) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string input;
    for (uint64_t left = random.Below(20); left > 0; --left) {
      input += static_cast<char>(random.Below(4));
    }
    const std::vector<std::string> frames = FramesOf(input, 3);
    EXPECT_EQ(frames.empty(), input.empty());
    EXPECT_LE(frames.size(), 3u);
  }
}

TEST(FuzzInputTest, ALengthBeyondTheEndMeansUpToTheEnd) {
  const uint8_t input[] = {9, 0, 'a', 'b'};
  std::span<const uint8_t> rest = input;
  EXPECT_EQ(FuzzText(TakeFuzzPart(rest)), "ab");
  EXPECT_TRUE(rest.empty());
  EXPECT_TRUE(TakeFuzzPart(rest).empty());
}

}  // namespace
}  // namespace covey
