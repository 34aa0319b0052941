// SPDX-License-Identifier: Apache-2.0
// Part files, block by block: a header of a file or of a piece, whose checksum is made right, then
// the payload of the piece, with a checksum that is made right, too, where there is one.
#include "common/snapshot/part_format.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr size_t kPayloadChecksumAt = 56;
constexpr size_t kChecksumAt = 60;

std::string TextOf(const PartBlock& block) { return std::string(FuzzText(block)); }

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string payload = "0123456789";
  PieceHeader piece{.shard = {TableId(3), ShardIndex(1)},
                    .generation = 5,
                    .index = 6,
                    .kind = proto::ReplicaPiece::VALUES,
                    .slot = 1,
                    .first = 70'000,
                    .bytes = payload.size()};
  return {
      TextOf(EncodePartHeader({.job = 1, .snapshot = 2, .epoch = 3})),
      TextOf(EncodePieceHeader(piece)) + payload + std::string(PiecePadding(payload.size()), '\0')};
}

bool FuzzOne(std::span<const uint8_t> input) {
  if (input.size() < kPartBlockBytes) return false;
  PartBlock block;
  std::copy_n(input.begin(), kPartBlockBytes, block.begin());
  const std::span<const uint8_t> rest = input.subspan(kPartBlockBytes);
  const uint64_t bytes = ReadFixed<uint64_t>(block, 48);
  if (bytes > 0 && bytes <= rest.size()) {
    WriteFixed(Crc32c(rest.first(bytes)), kPayloadChecksumAt, block);
  }
  WriteFixed(Crc32c(std::span<const uint8_t>(block).first(kChecksumAt)), kChecksumAt, block);

  if (const auto header = DecodePartHeader(block); header.ok()) {
    COVEY_CHECK(DecodePartHeader(EncodePartHeader(*header)).value() == *header);
    return true;
  }
  const auto piece = DecodePieceHeader(block);
  if (!piece.ok()) return false;
  COVEY_CHECK(DecodePieceHeader(EncodePieceHeader(*piece)).value() == *piece);
  if (!CheckPayload(*piece, rest).ok()) return false;
  COVEY_CHECK(PieceSpace(piece->bytes) == input.size());
  return true;
}

}  // namespace covey
