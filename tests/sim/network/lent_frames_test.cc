// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/lent_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace covey::sim {
namespace {

Message With(const Buffer& frame) {
  Message message;
  message.frames.push_back(frame);
  return message;
}

TEST(LentFramesTest, AFrameIsInUseUntilTheReceiversLastHandle) {
  LentFrames lent;
  Message message = With(lent.Lend(Buffer(), Buffer::CopyOf(std::array<uint8_t, 4>{1, 2, 3, 4})));
  EXPECT_TRUE(message.frames[0].is_lent());
  EXPECT_EQ(message.frames[0].bytes()[3], 4);
  const auto loans = lent.LoansOf(message);
  ASSERT_EQ(loans.size(), 1u);
  Buffer kept = message.frames[0].Slice(1, 2);
  message.frames.clear();
  EXPECT_EQ(lent.CountInUse(loans), 1u);
  kept = Buffer();
  EXPECT_EQ(lent.CountInUse(loans), 0u);
}

TEST(LentFramesTest, FramesOutliveIt) {
  std::optional<LentFrames> lent(std::in_place);
  const Message message = With(lent->Lend(Buffer(), Buffer::CopyOf(std::array<uint8_t, 1>{4})));
  lent.reset();
  EXPECT_EQ(message.frames[0].bytes()[0], 4);
}

TEST(LentFramesTest, AFrameThatIsSentOnStaysInUse) {
  LentFrames lent;
  Message first = With(lent.Lend(Buffer(), Buffer::CopyOf(std::array<uint8_t, 1>{4})));
  const auto loans = lent.LoansOf(first);
  Buffer second = lent.Lend(first.frames[0], Buffer::CopyOf(std::array<uint8_t, 1>{4}));
  first.frames.clear();
  EXPECT_EQ(lent.CountInUse(loans), 1u);
  second = Buffer();
  EXPECT_EQ(lent.CountInUse(loans), 0u);
}

}  // namespace
}  // namespace covey::sim
