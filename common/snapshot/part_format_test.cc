// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/part_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/crc32c.h"

namespace covey {
namespace {

const PartHeader kFile = {.job = 0x0102030405060708, .snapshot = 17, .epoch = 42};

PieceHeader PieceOf(const Buffer& payload) {
  return {.shard = {TableId(3), ShardIndex(70000)},
          .generation = 1 << 20,
          .index = uint64_t{1} << 40,
          .kind = proto::ReplicaPiece::SLOT,
          .slot = 1,
          .first = 1 << 18,
          .bytes = payload.size(),
          .checksum = Crc32c(payload.bytes())};
}

Buffer PayloadOf(size_t size) {
  Buffer payload = Buffer::Allocate(size);
  for (size_t i = 0; i < size; ++i) payload.MutableData()[i] = static_cast<uint8_t>(i + 1);
  return payload;
}

TEST(PartFormatTest, IsAsDrawn) {
  const PartBlock block = EncodePartHeader(kFile);
  const std::string begin(block.begin(), block.begin() + 26);
  EXPECT_EQ(std::string("COVEYPRT\1\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x11\0", 26),
            begin);
  const PartBlock piece = EncodePieceHeader(PieceOf(PayloadOf(1)));
  EXPECT_EQ(std::string("PIEC\2\0\0\0\1\0\0\0\3\0\0\0\x70\x11\1\0\0\0\0\0", 24),
            std::string(piece.begin(), piece.begin() + 24));
}

TEST(PartFormatTest, RoundTrip) {
  EXPECT_EQ(kFile, *DecodePartHeader(EncodePartHeader(kFile)));
  for (const size_t size : {0, 1, 63, 64, 65, 4096}) {
    const Buffer payload = PayloadOf(size);
    const PieceHeader header = PieceOf(payload);
    const std::vector<Buffer> frames = PieceFrames(header, payload);
    std::vector<uint8_t> bytes;
    for (const Buffer& frame : frames) {
      bytes.insert(bytes.end(), frame.bytes().begin(), frame.bytes().end());
    }
    EXPECT_EQ(payload.data(), frames[1].data()) << "the payload was copied";
    EXPECT_EQ(PieceSpace(size), bytes.size());
    EXPECT_EQ(0u, bytes.size() % kPartBlockBytes);
    const std::span<const uint8_t> all = bytes;
    EXPECT_EQ(header, *DecodePieceHeader(all.first(kPartBlockBytes)));
    EXPECT_TRUE(CheckPayload(header, all.subspan(kPartBlockBytes)).ok());
  }
}

TEST(PartFormatTest, AnotherMajorVersionIsNamed) {
  PartBlock block = EncodePartHeader(kFile);
  block[8] = 2;
  const uint32_t checksum = Crc32c(std::span<const uint8_t>(block).first(60));
  for (int i = 0; i < 4; ++i) block[60 + i] = static_cast<uint8_t>(checksum >> (8 * i));
  const absl::Status status = DecodePartHeader(block).status();
  EXPECT_EQ(absl::StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.ToString().find("has format 2")) << status;
}

TEST(PartFormatTest, ASizeThatCannotBeIsRefused) {
  PieceHeader header = PieceOf(PayloadOf(1));
  header.bytes = uint64_t{1} << 40;
  EXPECT_EQ(absl::StatusCode::kDataLoss,
            DecodePieceHeader(EncodePieceHeader(header)).status().code());
  header = PieceOf(PayloadOf(1));
  for (const int unknown : {0, proto::ReplicaPiece::Kind_ARRAYSIZE}) {
    header.kind = static_cast<proto::ReplicaPiece::Kind>(unknown);
    EXPECT_EQ(absl::StatusCode::kDataLoss,
              DecodePieceHeader(EncodePieceHeader(header)).status().code());
  }
}

TEST(PartFormatTest, PiecesOfEachKindAreRead) {
  PieceHeader header = PieceOf(PayloadOf(1));
  for (int kind = 1; kind < proto::ReplicaPiece::Kind_ARRAYSIZE; ++kind) {
    header.kind = static_cast<proto::ReplicaPiece::Kind>(kind);
    const absl::StatusOr<PieceHeader> read = DecodePieceHeader(EncodePieceHeader(header));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->kind, header.kind);
  }
}

}  // namespace
}  // namespace covey
