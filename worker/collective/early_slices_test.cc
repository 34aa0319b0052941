// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/early_slices.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "common/net/testing/frame_lender.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

TEST(EarlySlicesTest, KeepsNoLentMemory) {
  FrameLender lender;
  EarlySlices early;
  const CollectiveId id{.stream = 1, .sequence = 2};
  Message slice;
  slice.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>{1, 2, 3}));
  slice.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>{4}));
  early.Keep(id, lender.Lend(slice));
  EXPECT_EQ(lender.out(), 0u);
  EXPECT_EQ(early.bytes(), 4u);
  const std::deque<Message> kept = early.Take(id);
  ASSERT_EQ(kept.size(), 1u);
  ASSERT_EQ(kept[0].frames.size(), 2u);
  EXPECT_EQ(kept[0].frames[0].bytes()[2], 3);
  EXPECT_EQ(kept[0].frames[1].bytes()[0], 4);
}

TEST(EarlySlicesTest, CopiesNothingElse) {
  EarlySlices early;
  Message slice;
  slice.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>{1, 2, 3}));
  early.Keep({.stream = 1, .sequence = 2}, slice);
  EXPECT_EQ(early.Take({.stream = 1, .sequence = 2}).at(0).frames[0].data(),
            slice.frames[0].data());
}

TEST(EarlySlicesTest, CountsAllThatAMessageKeeps) {
  EarlySlices early;
  Message slice;
  for (int i = 0; i < 3; ++i) slice.frames.push_back(Buffer::Allocate(1000));
  slice.envelope.mutable_group_abort()->set_reason(std::string(5000, 'x'));
  early.Keep({.stream = 1, .sequence = 2}, slice);
  EXPECT_GE(early.bytes(), 8000u);
  EXPECT_TRUE(early.HasRoom(slice, kGroupEarlyBytesMax - 16'100));
  EXPECT_FALSE(early.HasRoom(slice, kGroupEarlyBytesMax - 16'000));
  early.Take({.stream = 1, .sequence = 2});
  EXPECT_EQ(early.bytes(), 0u);
}

}  // namespace
}  // namespace covey::worker
