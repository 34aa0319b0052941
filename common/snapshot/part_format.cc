// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/part_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr char kFileMagic[] = "COVEYPRT";
constexpr size_t kFileMagicBytes = 8;
constexpr char kPieceMagic[] = "PIEC";
constexpr size_t kPieceMagicBytes = 4;
constexpr size_t kChecksumAt = kPartBlockBytes - sizeof(uint32_t);

void Seal(PartBlock& block) {
  WriteFixed(Crc32c(Bytes(block).first(kChecksumAt)), kChecksumAt, block);
}

absl::Status CheckBlock(Bytes block, Bytes magic, absl::string_view what) {
  COVEY_CHECK(block.size() == kPartBlockBytes);
  if (!std::equal(magic.begin(), magic.end(), block.begin())) {
    return absl::DataLossError(absl::StrCat("no ", what, " begins here"));
  }
  if (Crc32c(block.first(kChecksumAt)) != ReadFixed<uint32_t>(block, kChecksumAt)) {
    return absl::DataLossError(absl::StrCat("the ", what, " differs from its checksum"));
  }
  return absl::OkStatus();
}

Bytes MagicOf(const char* text, size_t size) {
  return {reinterpret_cast<const uint8_t*>(text), size};
}

}  // namespace

PartBlock EncodePartHeader(const PartHeader& header) {
  PartBlock block = {};
  std::memcpy(block.data(), kFileMagic, kFileMagicBytes);
  WriteFixed(kPartMajor, 8, block);
  WriteFixed(kPartMinor, 10, block);
  WriteFixed(header.job, 16, block);
  WriteFixed(header.snapshot, 24, block);
  WriteFixed(header.epoch, 32, block);
  Seal(block);
  return block;
}

PartBlock EncodePieceHeader(const PieceHeader& header) {
  PartBlock block = {};
  std::memcpy(block.data(), kPieceMagic, kPieceMagicBytes);
  WriteFixed(static_cast<uint32_t>(header.kind), 4, block);
  WriteFixed(header.slot, 8, block);
  WriteFixed(header.shard.table.value(), 12, block);
  WriteFixed(header.shard.index.value(), 16, block);
  WriteFixed(header.generation, 24, block);
  WriteFixed(header.index, 32, block);
  WriteFixed(header.first, 40, block);
  WriteFixed(header.bytes, 48, block);
  WriteFixed(header.checksum, 56, block);
  Seal(block);
  return block;
}

size_t PiecePadding(uint64_t payload_bytes) {
  return (kPartBlockBytes - payload_bytes % kPartBlockBytes) % kPartBlockBytes;
}

uint64_t PieceSpace(uint64_t payload_bytes) {
  return kPartBlockBytes + payload_bytes + PiecePadding(payload_bytes);
}

std::vector<Buffer> PieceFrames(const PieceHeader& header, Buffer payload) {
  std::vector<Buffer> parts;
  parts.push_back(std::move(payload));
  return PieceFrames(header, std::move(parts));
}

std::vector<Buffer> PieceFrames(const PieceHeader& header, std::vector<Buffer> payload) {
  std::vector<Buffer> frames = {Buffer::CopyOf(EncodePieceHeader(header))};
  uint64_t bytes = 0;
  for (Buffer& part : payload) {
    bytes += part.size();
    frames.push_back(std::move(part));
  }
  COVEY_CHECK(header.bytes == bytes);
  if (const size_t padding = PiecePadding(header.bytes); padding > 0) {
    frames.push_back(Buffer::CopyOf(Bytes(PartBlock{}).first(padding)));
  }
  return frames;
}

absl::StatusOr<PartHeader> DecodePartHeader(Bytes block) {
  COVEY_RETURN_IF_ERROR(
      CheckBlock(block, MagicOf(kFileMagic, kFileMagicBytes), "header of a part file"));
  if (const uint16_t major = ReadFixed<uint16_t>(block, 8); major != kPartMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file has format ", major, ", and this program reads format ", kPartMajor,
                     ": use the version of Covey that wrote it"));
  }
  return PartHeader{.job = ReadFixed<uint64_t>(block, 16),
                    .snapshot = ReadFixed<uint64_t>(block, 24),
                    .epoch = ReadFixed<uint64_t>(block, 32)};
}

absl::StatusOr<PieceHeader> DecodePieceHeader(Bytes block) {
  COVEY_RETURN_IF_ERROR(
      CheckBlock(block, MagicOf(kPieceMagic, kPieceMagicBytes), "header of a piece"));
  const uint32_t kind = ReadFixed<uint32_t>(block, 4);
  const uint64_t bytes = ReadFixed<uint64_t>(block, 48);
  if (kind == proto::ReplicaPiece::KIND_UNSPECIFIED ||
      !proto::ReplicaPiece::Kind_IsValid(static_cast<int>(kind))) {
    return absl::DataLossError(absl::StrCat("the piece has the unknown kind ", kind));
  }
  if (bytes > kFrameBytesMax) {
    return absl::DataLossError(
        absl::StrCat("the piece has ", bytes, " bytes, more than ", kFrameBytesMax));
  }
  return PieceHeader{.shard = {TableId(ReadFixed<uint32_t>(block, 12)),
                               ShardIndex(ReadFixed<uint32_t>(block, 16))},
                     .generation = ReadFixed<uint64_t>(block, 24),
                     .index = ReadFixed<uint64_t>(block, 32),
                     .kind = static_cast<proto::ReplicaPiece::Kind>(kind),
                     .slot = ReadFixed<uint32_t>(block, 8),
                     .first = ReadFixed<uint64_t>(block, 40),
                     .bytes = bytes,
                     .checksum = ReadFixed<uint32_t>(block, 56)};
}

absl::Status CheckPayload(const PieceHeader& header, Bytes payload_and_padding) {
  if (payload_and_padding.size() != PieceSpace(header.bytes) - kPartBlockBytes) {
    return absl::DataLossError(absl::StrCat("the piece is ", payload_and_padding.size(),
                                            " bytes long, but its header says ", header.bytes));
  }
  if (Crc32c(payload_and_padding.first(header.bytes)) != header.checksum) {
    return absl::DataLossError("the bytes of the piece differ from their checksum");
  }
  const Bytes padding = payload_and_padding.subspan(header.bytes);
  if (std::any_of(padding.begin(), padding.end(), [](uint8_t byte) { return byte != 0; })) {
    return absl::DataLossError("the bytes after the piece are not zero");
  }
  return absl::OkStatus();
}

}  // namespace covey
