#include "common/net/frame_checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/random.h"

namespace covey {
namespace {

Message TwoFrames(Random& random) {
  Message message;
  for (const size_t size : {517, 4096}) {
    Buffer frame = Buffer::Allocate(size);
    for (uint8_t& byte : frame.MutableAs<uint8_t>()) byte = static_cast<uint8_t>(random.Next());
    message.frames.push_back(std::move(frame));
  }
  return message;
}

TEST(FrameChecksumTest, NoticesEveryFlippedBit) {
  Random random(3);
  Message message = TwoFrames(random);
  SetFrameChecksums(message);
  ASSERT_TRUE(CheckFrameChecksums(message).ok());
  for (Buffer& frame : message.frames) {
    for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
      const uint8_t mask = static_cast<uint8_t>(1 << (bit % 8));
      frame.MutableData()[bit / 8] ^= mask;
      ASSERT_EQ(CheckFrameChecksums(message).code(), absl::StatusCode::kDataLoss) << bit;
      frame.MutableData()[bit / 8] ^= mask;
    }
  }
  EXPECT_TRUE(CheckFrameChecksums(message).ok());
}

TEST(FrameChecksumTest, RefusesFramesWithoutChecksumsAndChecksumsWithoutFrames) {
  Random random(4);
  Message message = TwoFrames(random);
  EXPECT_EQ(CheckFrameChecksums(message).code(), absl::StatusCode::kDataLoss);
  SetFrameChecksums(message);
  message.frames.pop_back();
  EXPECT_EQ(CheckFrameChecksums(message).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(CheckFrameChecksums(Message()).ok());
}

TEST(FrameChecksumTest, KeepsTheChecksumsOfFramesThatArePassedOn) {
  Random random(5);
  const Message made = TwoFrames(random);
  Message passed_on;
  // One that is known to be wrong must stay so: a relay never vouches for what it was given.
  AddFrame(passed_on, made.frames[0], FrameChecksum(made.frames[0]) ^ 1);
  passed_on.frames.push_back(made.frames[1]);
  SetFrameChecksums(passed_on);
  EXPECT_EQ(passed_on.envelope.frame_checksums(0), FrameChecksum(made.frames[0]) ^ 1);
  EXPECT_EQ(passed_on.envelope.frame_checksums(1), FrameChecksum(made.frames[1]));
  EXPECT_EQ(CheckFrameChecksums(passed_on).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace covey
