// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/frame_space.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr size_t kBytes = 64 << 10;
constexpr size_t kSlots = 16;

struct Space {
  std::vector<std::atomic<uint32_t>> released = std::vector<std::atomic<uint32_t>>(kSlots);
  FrameSpace frames{kBytes, released};

  void Release(const FrameSpace::Range& range) { released[range.use.slot] = range.use.generation; }
};

TEST(FrameSpaceTest, RangesInUseNeverOverlapAndAllOfItComesBack) {
  Space space;
  Random random(1);
  std::vector<FrameSpace::Range> in_use;
  size_t refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    if (random.Chance(0.6)) {
      const size_t bytes = 1 + random.Below(kBytes / 4);
      const auto range = space.frames.Take(bytes);
      if (!range) {
        ++refused;
        continue;
      }
      EXPECT_GE(range->bytes, bytes);
      EXPECT_EQ(range->offset % 64, 0u);
      ASSERT_LE(range->offset + range->bytes, kBytes);
      for (const FrameSpace::Range& other : in_use) {
        ASSERT_TRUE(range->offset + range->bytes <= other.offset ||
                    other.offset + other.bytes <= range->offset);
        ASSERT_NE(range->use.slot, other.use.slot);
      }
      if (random.Chance(0.1)) {
        space.frames.GiveBack(*range);
      } else {
        in_use.push_back(*range);
      }
    } else if (!in_use.empty()) {
      std::swap(in_use[random.Below(in_use.size())], in_use.back());
      space.Release(in_use.back());
      in_use.pop_back();
    }
  }
  EXPECT_GT(refused, 100u);
  for (const FrameSpace::Range& range : in_use) space.Release(range);
  const auto all = space.frames.Take(kBytes);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->offset, 0u);
}

TEST(FrameSpaceTest, TheLowestMemoryIsUsedAgainFirst) {
  Space space;
  const auto first = space.frames.Take(1000);
  const auto second = space.frames.Take(1000);
  space.Release(*first);
  EXPECT_EQ(space.frames.Take(1000)->offset, first->offset);
  EXPECT_GT(space.frames.Take(1000)->offset, second->offset);
}

TEST(FrameSpaceTest, ThereAreOnlySoManySlots) {
  Space space;
  for (size_t i = 0; i < kSlots; ++i) EXPECT_TRUE(space.frames.Take(1));
  EXPECT_FALSE(space.frames.Take(1));
}

TEST(FrameSpaceTest, AReleaseOfAnEarlierUseFreesNothing) {
  Space space;
  const auto first = space.frames.Take(kBytes);
  space.Release(*first);
  const auto second = space.frames.Take(kBytes);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->use.slot, first->use.slot);
  EXPECT_FALSE(space.frames.Take(1));
}

// The peer may write anything, also releases of uses to come.
TEST(FrameSpaceTest, AReleaseThatIsForetoldFreesNothingTwice) {
  Space space;
  for (auto& released : space.released) released = 1;
  const auto first = space.frames.Take(kBytes / 2);
  const auto second = space.frames.Take(kBytes / 2);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->offset, first->offset) << "the first one seems to be free";
  space.frames.GiveBack(*first);
  space.frames.GiveBack(*second);
  for (auto& released : space.released) released = 0;
  const auto all = space.frames.Take(kBytes);
  ASSERT_TRUE(all);
  EXPECT_FALSE(space.frames.Take(1));
}

}  // namespace
}  // namespace covey
