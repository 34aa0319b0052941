// SPDX-License-Identifier: Apache-2.0
#include "common/table/key_slots.h"

#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

// Clients and servers of other builds, and snapshots, place keys alike.
TEST(KeySlotsTest, ASlotIsTheFirstBitsOfTheMixedKey) {
  // The first number of SplitMix64 with seed 0 is e220a8397b1dcdaf.
  EXPECT_EQ(SlotOfKey(0), 0xe220);
  EXPECT_EQ(SlotOfKey(UnmixBits(0)), 0);
  EXPECT_EQ(SlotOfKey(UnmixBits(~uint64_t{0})), kKeySlots - 1);
}

TEST(KeySlotsTest, SlotsHoldAboutEqualNumbersOfSmallKeys) {
  std::vector<int> keys(16);
  for (uint64_t key = 0; key < 160'000; ++key) ++keys[SlotOfKey(key) * 16 / kKeySlots];
  for (const int count : keys) EXPECT_NEAR(count, 10'000, 500);
}

TEST(KeySlotsTest, MixingCanBeUndone) {
  Random random(1);
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_EQ(UnmixBits(MixBits(key)), key);
  }
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t key = random.Next();
    ASSERT_EQ(UnmixBits(MixBits(key)), key);
    ASSERT_EQ(MixBits(UnmixBits(key)), key);
  }
}

}  // namespace
}  // namespace covey
