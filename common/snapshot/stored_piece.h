// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/snapshot/part_format.h"
#include "proto/snapshot.pb.h"

namespace covey {

// How the manifest of a snapshot and the bytes of its part files belong together. Pure.

// The bytes of a file that hold a piece: header, payload and zeros.
struct StoredRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
// Precondition: the piece is one of a checked manifest, here and below.
StoredRange RangeOf(const proto::SnapshotPiece& piece);
// What the pieces of a shard take in its file.
uint64_t StoredBytesOf(const proto::SnapshotShard& shard);

// The path in the store of a file of the manifest, or of the file that holds a shard.
std::string PathOf(const proto::SnapshotManifest& manifest, const proto::SnapshotFile& file);
std::string PathOf(const proto::SnapshotManifest& manifest, const proto::SnapshotShard& shard);

// The header that the manifest promises for a piece.
PieceHeader HeaderOf(const proto::SnapshotShard& shard, const proto::SnapshotPiece& piece);

// The payload of a piece, from the bytes of its range; shares their memory. DATA_LOSS: they are not
// what the manifest promises, because they are damaged or belong elsewhere.
absl::StatusOr<Buffer> PayloadOf(const proto::SnapshotShard& shard,
                                 const proto::SnapshotPiece& piece, const Buffer& stored);

// DATA_LOSS: the header, the first kPartBlockBytes of this file of the manifest, is damaged or one
// of another snapshot; FAILED_PRECONDITION: of another major version.
absl::Status CheckPartHeader(const proto::SnapshotManifest& manifest,
                             const proto::SnapshotFile& file, const Buffer& header);

}  // namespace covey
