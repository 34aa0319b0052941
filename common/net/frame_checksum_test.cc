// SPDX-License-Identifier: Apache-2.0
#include "common/net/frame_checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/random.h"
#include "common/net/wire.h"

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
  // A wrong checksum must stay wrong: a relay never vouches for the bytes that it forwards.
  AddFrame(passed_on, made.frames[0], FrameChecksum(made.frames[0]) ^ 1);
  passed_on.frames.push_back(made.frames[1]);
  SetFrameChecksums(passed_on);
  EXPECT_EQ(passed_on.envelope.frame_checksums(0), FrameChecksum(made.frames[0]) ^ 1);
  EXPECT_EQ(passed_on.envelope.frame_checksums(1), FrameChecksum(made.frames[1]));
  EXPECT_EQ(CheckFrameChecksums(passed_on).code(), absl::StatusCode::kDataLoss);
}

// A flip of any single bit in the prelude, the envelope or a frame is noticed.
TEST(FrameChecksumTest, NoFlippedBitOfAWholeMessageGoesUnnoticed) {
  Random random(6);
  Message message = TwoFrames(random);
  proto::PushRequest& push = *message.envelope.mutable_push_request();
  push.mutable_id()->set_sequence(77);
  push.set_samples(64);
  SetFrameChecksums(message);
  const std::vector<Buffer> sent = *EncodeMessage({}, message);
  const auto is_noticed = [](const std::vector<Buffer>& arrived) {
    const absl::StatusOr<Message> decoded = DecodeMessage(arrived, {});
    return !decoded.ok() || !CheckFrameChecksums(*decoded).ok();
  };
  ASSERT_FALSE(is_noticed(sent));
  for (size_t frame = 0; frame < sent.size(); ++frame) {
    std::vector<Buffer> arrived = sent;
    arrived[frame] = Buffer::CopyOf(sent[frame].bytes());
    for (size_t bit = 0; bit < sent[frame].size() * 8; ++bit) {
      const uint8_t mask = static_cast<uint8_t>(1 << (bit % 8));
      arrived[frame].MutableData()[bit / 8] ^= mask;
      ASSERT_TRUE(is_noticed(arrived)) << "bit " << bit << " of part " << frame;
      arrived[frame].MutableData()[bit / 8] ^= mask;
    }
  }
}

}  // namespace
}  // namespace covey
