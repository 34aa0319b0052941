// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "proto/replication.pb.h"

namespace covey {

// The bytes of a part file, which holds contents of shards: a header, then pieces without a gap, up
// to the end of the file. Pure. Every byte is under a checksum or must be zero. All numbers are
// little endian; checksums are CRC-32C.
//
//   the file's header                        a piece's header
//   offset  bytes  field                     offset  bytes  field
//   0       8      "COVEYPRT"                0       4      "PIEC"
//   8       2      major version, 1          4       4      kind, a ReplicaPiece.Kind
//   10      2      minor version, 0          8       4      slot of the optimizer
//   12      4      0                         12      4      table
//   16      8      job, its fingerprint      16      4      shard
//   24      8      snapshot, its id          20      4      0
//   32      8      epoch of its order        24      8      generation of the shard
//   40      20     0                         32      8      index of the record
//   60      4      checksum of the above     40      8      first element
//                                            48      8      bytes of the payload
//                                            56      4      checksum of the payload
//                                            60      4      checksum of the above
//
// The payload follows its header: the frame of the ReplicaPiece, then zeros up to a multiple of 64.
//
// Versions: a reader refuses another major version, and takes any minor one. A minor version may
// give meaning to zeros of a header, which readers of an older one ignore; all else is a new major
// version, of these files or, as for the kind UPDATES, of the manifests that name them.
inline constexpr size_t kPartBlockBytes = 64;
inline constexpr uint16_t kPartMajor = 1;
inline constexpr uint16_t kPartMinor = 0;
using PartBlock = std::array<uint8_t, kPartBlockBytes>;

struct PartHeader {
  // As in proto: Header.job, SnapshotOrder.id and epoch.
  uint64_t job = 0;
  uint64_t snapshot = 0;
  uint64_t epoch = 0;
  friend bool operator==(const PartHeader&, const PartHeader&) = default;
};

// As in ReplicaPiece.
struct PieceHeader {
  ShardId shard;
  uint64_t generation = 0;
  uint64_t index = 0;
  proto::ReplicaPiece::Kind kind = proto::ReplicaPiece::KIND_UNSPECIFIED;
  uint32_t slot = 0;
  uint64_t first = 0;
  // Of the payload; at most kFrameBytesMax.
  uint64_t bytes = 0;
  // CRC-32C of the payload.
  uint32_t checksum = 0;
  friend bool operator==(const PieceHeader&, const PieceHeader&) = default;
};

PartBlock EncodePartHeader(const PartHeader& header);
PartBlock EncodePieceHeader(const PieceHeader& header);
// Zeros after a payload of this size: 0 to 63.
size_t PiecePadding(uint64_t payload_bytes);
// All bytes of a piece in the file: header, payload, zeros.
uint64_t PieceSpace(uint64_t payload_bytes);
// The piece as frames to be appended: header, payload and zeros. The payload is not copied.
// Precondition: `header` has its size and checksum.
std::vector<Buffer> PieceFrames(const PieceHeader& header, Buffer payload);
// The same for a payload that consists of several buffers.
std::vector<Buffer> PieceFrames(const PieceHeader& header, std::vector<Buffer> payload);

// Preconditions: a block has kPartBlockBytes bytes. DATA_LOSS: the block is damaged, or is
// something else; FAILED_PRECONDITION: another major version.
absl::StatusOr<PartHeader> DecodePartHeader(std::span<const uint8_t> block);
absl::StatusOr<PieceHeader> DecodePieceHeader(std::span<const uint8_t> block);
// DATA_LOSS: the bytes that follow the header, payload and zeros, are not those that were written.
absl::Status CheckPayload(const PieceHeader& header, std::span<const uint8_t> payload_and_padding);

}  // namespace covey
