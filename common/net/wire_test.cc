// SPDX-License-Identifier: Apache-2.0
#include "common/net/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "common/net/control_methods.h"

namespace covey {
namespace {

constexpr WireLimits kSmall = {.envelope_bytes = 512, .frame_bytes = 256, .frames = 3};

Buffer RandomBuffer(Random& random, size_t size) {
  Buffer buffer = Buffer::Allocate(size);
  for (uint8_t& byte : buffer.MutableAs<uint8_t>()) byte = static_cast<uint8_t>(random.Next());
  return buffer;
}

Message RandomMessage(Random& random) {
  Message message;
  proto::Envelope& envelope = message.envelope;
  envelope.mutable_header()->set_job(random.Next());
  envelope.mutable_header()->set_node(random.Below(1000));
  envelope.mutable_header()->set_incarnation(random.Next());
  envelope.mutable_header()->set_request_id(random.Next());
  message.set_to({NodeId(random.Below(1000)), static_cast<uint32_t>(random.Below(8))});
  proto::PushRequest& push = *envelope.mutable_push_request();
  push.mutable_id()->set_table(static_cast<uint32_t>(random.Below(100)));
  push.mutable_id()->set_sequence(random.Next());
  push.set_samples(random.Below(4096));
  if (random.Chance(0.5)) envelope.mutable_status()->set_message(std::string(20, 'x'));
  const uint64_t frames = random.Below(4);
  for (uint64_t i = 0; i < frames; ++i) {
    message.frames.push_back(RandomBuffer(random, random.Below(257)));
  }
  return message;
}

std::vector<Buffer> Encoded(const Message& message) {
  auto frames = EncodeMessage(kSmall, message);
  EXPECT_TRUE(frames.ok()) << frames.status();
  return *std::move(frames);
}

// A head frame with a correct checksum, around any envelope bytes.
Buffer SealedHead(std::span<const uint8_t> envelope) {
  Buffer head = Buffer::Allocate(kWirePreludeBytes + envelope.size());
  uint8_t* to = head.MutableData();
  const uint32_t size = static_cast<uint32_t>(envelope.size());
  const uint32_t crc = Crc32c(envelope);
  std::memcpy(to, "CVEY\1\0\0\0", 8);
  std::memcpy(to + 8, &size, 4);
  std::memcpy(to + 12, &crc, 4);
  if (!envelope.empty()) std::memcpy(to + 16, envelope.data(), envelope.size());
  return head;
}

TEST(WireTest, DrawsTheFirstBytesAsTheHeaderSays) {
  Message message;
  message.set_to({NodeId(7), 0});
  const std::vector<Buffer> frames = Encoded(message);
  ASSERT_EQ(frames.size(), 1u);
  // Field 3 (to_node), varint 7; CRC-32C of these two bytes.
  const uint8_t envelope[] = {0x18, 0x07};
  const Buffer expected = SealedHead(envelope);
  EXPECT_EQ(std::vector<uint8_t>(frames[0].bytes().begin(), frames[0].bytes().end()),
            std::vector<uint8_t>(expected.bytes().begin(), expected.bytes().end()));
}

TEST(WireTest, RoundTripKeepsEnvelopeAndSharesFrames) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Message message = RandomMessage(random);
    const auto decoded = DecodeMessage(Encoded(message), kSmall);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    proto::Envelope envelope = decoded->envelope;
    envelope.clear_frame_bytes();
    EXPECT_EQ(envelope.SerializeAsString(), message.envelope.SerializeAsString());
    ASSERT_EQ(decoded->frames.size(), message.frames.size());
    for (size_t f = 0; f < message.frames.size(); ++f) {
      EXPECT_EQ(decoded->frames[f].data(), message.frames[f].data());
      EXPECT_EQ(decoded->frames[f].size(), message.frames[f].size());
    }
  }
}

TEST(WireTest, RefusesToEncodeBeyondTheLimits) {
  Random random(2);
  Message many;
  for (int i = 0; i < 4; ++i) many.frames.push_back(RandomBuffer(random, 1));
  EXPECT_EQ(EncodeMessage(kSmall, many).status().code(), absl::StatusCode::kResourceExhausted);
  Message large;
  large.frames.push_back(RandomBuffer(random, 257));
  EXPECT_EQ(EncodeMessage(kSmall, large).status().code(), absl::StatusCode::kResourceExhausted);
  Message wordy;
  wordy.envelope.mutable_status()->set_message(std::string(600, 'x'));
  EXPECT_EQ(EncodeMessage(kSmall, wordy).status().code(), absl::StatusCode::kResourceExhausted);
}

proto::Envelope With(int body) {
  proto::Envelope envelope;
  const auto* field = proto::Envelope::descriptor()->FindFieldByNumber(body);
  envelope.GetReflection()->MutableMessage(&envelope, field);
  return envelope;
}

TEST(WireTest, RefusesWhatOnlyTheSchedulerOrTheOwnProcessSays) {
  const auto accepts = [](int body) {
    const Message message{.envelope = With(body)};
    return DecodeMessage(Encoded(message), kSmall).ok();
  };
  for (const ControlMethod& method : kControlMethods) {
    EXPECT_FALSE(accepts(method.request)) << method.rpc;
    EXPECT_FALSE(accepts(method.reply)) << method.rpc;
  }
  for (const int body : {proto::Envelope::kDiskAppend, proto::Envelope::kDiskDurable,
                         proto::Envelope::kConnectionLost, proto::Envelope::kProbeRequest,
                         proto::Envelope::kProbeReply, proto::Envelope::kLeaseNotice}) {
    EXPECT_FALSE(accepts(body)) << BodyName(With(body));
  }
  for (const int body :
       {proto::Envelope::kPushRequest, proto::Envelope::kPullReply,
        proto::Envelope::kReplicateRequest, proto::Envelope::kReplicaPiece,
        proto::Envelope::kGroupSlice, proto::Envelope::kGroupProbe, proto::Envelope::kPeerProbe}) {
    EXPECT_TRUE(accepts(body)) << BodyName(With(body));
  }
}

TEST(WireTest, RefusesEveryTruncation) {
  Random random(3);
  for (int i = 0; i < 50; ++i) {
    const std::vector<Buffer> whole = Encoded(RandomMessage(random));
    for (size_t frame = 0; frame < whole.size(); ++frame) {
      for (size_t size = 0; size < whole[frame].size(); ++size) {
        std::vector<Buffer> cut = whole;
        cut[frame] = whole[frame].Slice(0, size);
        EXPECT_FALSE(DecodeMessage(cut, kSmall).ok());
      }
    }
    for (size_t kept = 0; kept < whole.size(); ++kept) {
      EXPECT_FALSE(DecodeMessage(std::span(whole).first(kept), kSmall).ok());
    }
    std::vector<Buffer> longer = whole;
    longer.push_back(RandomBuffer(random, 1));
    EXPECT_FALSE(DecodeMessage(longer, kSmall).ok());
  }
}

TEST(WireTest, RefusesEveryFlippedBitOfTheHead) {
  Random random(4);
  for (int i = 0; i < 20; ++i) {
    const std::vector<Buffer> whole = Encoded(RandomMessage(random));
    for (size_t bit = 0; bit < 8 * whole[0].size(); ++bit) {
      std::vector<Buffer> flipped = whole;
      flipped[0] = Buffer::CopyOf(whole[0].bytes());
      flipped[0].MutableData()[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
      EXPECT_FALSE(DecodeMessage(flipped, kSmall).ok());
    }
  }
}

// The checksum is correct, so that the mutations reach the Protobuf parser and the frame check.
TEST(WireTest, SurvivesMutatedEnvelopesUnderARightChecksum) {
  Random random(5);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<Buffer> frames = Encoded(RandomMessage(random));
    const std::span<const uint8_t> envelope = frames[0].bytes().subspan(kWirePreludeBytes);
    std::vector<uint8_t> bytes(envelope.begin(), envelope.end());
    const uint64_t mutations = 1 + random.Below(4);
    for (uint64_t m = 0; m < mutations && !bytes.empty(); ++m) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(3)) {
        case 0:
          bytes[at] = static_cast<uint8_t>(random.Next());
          break;
        case 1:
          bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at));
          break;
        default:
          bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at),
                       static_cast<uint8_t>(random.Next()));
      }
    }
    frames[0] = SealedHead(bytes);
    const auto decoded = DecodeMessage(frames, kSmall);
    if (!decoded.ok()) continue;
    ++accepted;
    ASSERT_TRUE(CheckFrames(*decoded, kSmall).ok());
  }
  // Under a correct checksum, changed values go unnoticed; changed sizes must not.
  EXPECT_GT(accepted, 0);
}

TEST(WireTest, SurvivesRandomBytes) {
  Random random(6);
  for (int i = 0; i < 20000; ++i) {
    std::vector<Buffer> frames;
    const uint64_t count = 1 + random.Below(3);
    for (uint64_t f = 0; f < count; ++f) {
      frames.push_back(RandomBuffer(random, random.Below(80)));
    }
    EXPECT_FALSE(DecodeMessage(frames, kSmall).ok());
    if (random.Chance(0.5)) {
      frames[0] = SealedHead(frames[0].bytes());
      DecodeMessage(frames, kSmall).IgnoreError();
    }
  }
}

TEST(WireTest, RefusesLyingLengths) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    Message message = RandomMessage(random);
    message.frames.clear();
    message.frames.push_back(RandomBuffer(random, 64));
    message.envelope.clear_frame_bytes();
    const uint64_t lie = random.Chance(0.5) ? random.Next() : random.Below(64);
    if (lie == 64) continue;
    message.envelope.add_frame_bytes(lie);
    const std::string envelope = message.envelope.SerializeAsString();
    const Buffer frames[] = {
        SealedHead({reinterpret_cast<const uint8_t*>(envelope.data()), envelope.size()}),
        message.frames[0]};
    EXPECT_EQ(DecodeMessage(frames, kSmall).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(WireTest, RefusesAnEnvelopeBeyondTheLimitWithoutParsingIt) {
  const std::vector<uint8_t> zeros(kSmall.envelope_bytes + 1);
  const Buffer frames[] = {SealedHead(zeros)};
  const absl::Status status = DecodeMessage(frames, kSmall).status();
  EXPECT_EQ(status.message(), "envelope of 513 bytes; at most 512 are allowed");
}

TEST(WireTest, NamesAForeignVersion) {
  Random random(8);
  std::vector<Buffer> frames = Encoded(RandomMessage(random));
  frames[0] = Buffer::CopyOf(frames[0].bytes());
  frames[0].MutableData()[4] = 9;
  EXPECT_EQ(DecodeMessage(frames, kSmall).status().message(),
            "wire version 9; this program speaks 1");
}

}  // namespace
}  // namespace covey
