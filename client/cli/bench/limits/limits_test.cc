// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "client/cli/bench/limits/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/piece_loop.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

TEST(ReadThroughTest, ReadsEveryByte) {
  std::vector<uint8_t> bytes(19, 0);
  const uint64_t nothing = ReadThrough(bytes.data(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = 1;
    EXPECT_NE(ReadThrough(bytes.data(), bytes.size()), nothing) << i;
    bytes[i] = 0;
  }
}

TEST(LanesTest, HaveMemoryOfTheirOwn) {
  const std::vector<LaneMemory> lanes = MakeLanes(100, 3);
  ASSERT_EQ(lanes.size(), 3u);
  EXPECT_EQ(lanes[2].size(), 100u);
  EXPECT_NE(lanes[0][99], lanes[1][99]);
}

TEST(PieceLoopTest, GoesThroughTheArraysAndBeginsAgain) {
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  const auto run = [&](absl::Duration duration) {
    return RunPieces({.bytes = 10, .duration = duration, .piece_bytes = 4},
                     [&](uint64_t offset, uint64_t size) { pieces.emplace_back(offset, size); });
  };
  const Sample sample = run(absl::Milliseconds(1));
  ASSERT_GE(pieces.size(), 4u);
  pieces.resize(4);
  EXPECT_THAT(pieces,
              ElementsAre(std::pair(0, 4), std::pair(4, 4), std::pair(8, 2), std::pair(0, 4)));
  EXPECT_GT(sample.values[0], 0);
}

TEST(MemoryLimitsTest, MeasureTheGivenArrays) {
  for (const Contender& limit : MakeMemoryLimits(8192, absl::ZeroDuration())) {
    const auto sample = limit.measure();
    ASSERT_TRUE(sample.ok());
    EXPECT_EQ(sample->bytes, 8192u);
    EXPECT_EQ(limit.rows[0].bytes, 8192u);
  }
}

TEST(LimitsTest, AreThoseOfTheDirection) {
  EXPECT_THAT(LimitsOf("push", ""),
              ElementsAre("raw socket push", "raw zeromq", "ring copy and sum", "redis set"));
  EXPECT_THAT(LimitsOf("pull", ""),
              ElementsAre("raw socket pull", "raw zeromq", "process copy", "redis get"));
  EXPECT_THAT(LimitsOf("pull", " p50"),
              ElementsAre("raw socket p50", "raw zeromq p50", "redis p50"));
}

TEST(PartnerTest, RefusesSpecsThatItDoesNotKnow) {
  for (const char* spec : {"", "socket", "ring x", "ring x y", "memory", "memory x", "friend 7"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ServePartner(spec))) << spec;
  }
}

}  // namespace
}  // namespace covey::cli
