// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/lent_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace covey::sim {
namespace {

class LentFramesTest : public testing::Test {
 protected:
  // A frame of a sender; counts those that the sender has back.
  Buffer Frame() {
    return Buffer::Wrap(memory_.data(), memory_.size(), [this] { ++returned_; });
  }
  static Message With(const Buffer& frame) {
    Message message;
    message.frames.push_back(frame);
    return message;
  }

  const std::array<uint8_t, 4> memory_ = {1, 2, 3, 4};
  int returned_ = 0;
  std::optional<LentFrames> lent_{std::in_place};
};

TEST_F(LentFramesTest, AFrameReturnsWithTheReceiversLastHandle) {
  Message message = With(lent_->Lend(7, Frame(), Buffer::CopyOf(memory_)));
  EXPECT_TRUE(message.frames[0].is_lent());
  EXPECT_EQ(message.frames[0].bytes()[3], 4);
  const auto loans = lent_->LoansOf(message);
  ASSERT_EQ(loans.size(), 1u);
  Buffer kept = message.frames[0].Slice(1, 2);
  message.frames.clear();
  EXPECT_EQ(lent_->CountInUse(loans), 1u);
  EXPECT_EQ(returned_, 0);
  kept = Buffer();
  EXPECT_EQ(lent_->CountInUse(loans), 0u);
  EXPECT_EQ(returned_, 1);
}

TEST_F(LentFramesTest, ABrokenConnectionReturnsItsFramesAtOnce) {
  const Message message = With(lent_->Lend(7, Frame(), Buffer::CopyOf(memory_)));
  lent_->GiveBack(8);
  EXPECT_EQ(returned_, 0);
  lent_->GiveBack(7);
  EXPECT_EQ(returned_, 1);
  EXPECT_EQ(message.frames[0].bytes()[3], 4);
  EXPECT_EQ(lent_->CountInUse(lent_->LoansOf(message)), 1u);
}

TEST_F(LentFramesTest, FramesOutliveIt) {
  Message message = With(lent_->Lend(7, Frame(), Buffer::CopyOf(memory_)));
  lent_.reset();
  EXPECT_EQ(returned_, 1);
  EXPECT_EQ(message.frames[0].bytes()[3], 4);
  message.frames.clear();
}

TEST_F(LentFramesTest, AFrameMayBeLentOn) {
  Message second;
  {
    const Buffer first = lent_->Lend(7, Frame(), Buffer::CopyOf(memory_));
    second = With(lent_->Lend(8, first, Buffer::CopyOf(memory_)));
  }
  EXPECT_EQ(returned_, 0);
  lent_->GiveBack(8);
  EXPECT_EQ(returned_, 1);
  EXPECT_EQ(lent_->CountInUse(lent_->LoansOf(second)), 1u);
}

}  // namespace
}  // namespace covey::sim
