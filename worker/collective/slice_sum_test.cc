// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/slice_sum.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

// Three numbers whose float sum depends on the order of addition.
constexpr float kValues[] = {1e8f, 1, -1e8f};

SlicePiece PieceOf(float value) {
  return {.bytes = Buffer::CopyOf({reinterpret_cast<const uint8_t*>(&value), sizeof(value)}),
          .samples = 1,
          .agreed_plan_epoch = 7};
}

// The sum of kValues at the member with operand `own`; the others' come in `order`, and its own
// ones when `own` itself is in it.
float SumOf(uint32_t own, bool own_in_piece, std::span<const uint32_t> order) {
  SliceSum slice;
  float sum = kValues[own];
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != own) {
      slice.Give(order[i], PieceOf(kValues[order[i]]));
    } else {
      SlicePiece piece = PieceOf(kValues[own]);
      if (!own_in_piece) piece.bytes = Buffer();
      slice.GiveOwn(piece);
    }
    const bool complete = slice.Advance({.operands = 3, .own = own, .own_in_piece = own_in_piece},
                                        {}, std::span(&sum, 1));
    EXPECT_EQ(complete, i == 2);
  }
  EXPECT_EQ(slice.waiting_bytes(), 0u);
  EXPECT_EQ(slice.samples(), 3u);
  EXPECT_EQ(slice.agreed_plan_epoch(), 7u);
  return sum;
}

TEST(SliceSumTest, AllMembersAddInTheSameOrderWhateverComesFirst) {
  const float expected = kValues[0] + kValues[1] + kValues[2];
  ASSERT_NE(expected, kValues[0] + kValues[2] + kValues[1]);
  std::vector<uint32_t> order = {0, 1, 2};
  do {
    for (const uint32_t own : {0u, 1u, 2u}) {
      for (const bool own_in_piece : {false, true}) {
        EXPECT_EQ(SumOf(own, own_in_piece, order), expected)
            << "own " << own << (own_in_piece ? " in its piece" : " in place") << ", " << order[0]
            << order[1] << order[2];
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SliceSumTest, TheMemoryOfTheSumIsLeftAloneUntilTheOwnValuesAreGiven) {
  for (const bool own_in_piece : {false, true}) {
    SliceSum slice;
    float sum = 42;
    slice.Give(0, PieceOf(1));
    EXPECT_FALSE(slice.Advance({.operands = 2, .own = 1, .own_in_piece = own_in_piece}, {},
                               std::span(&sum, 1)));
    EXPECT_EQ(sum, 42);
  }
}

}  // namespace
}  // namespace covey::worker
