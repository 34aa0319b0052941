// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/stored_piece.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/snapshot/manifest.h"

namespace covey {
namespace {

std::string Join(const proto::SnapshotManifest& manifest, const std::string& folder,
                 const std::string& file) {
  return absl::StrCat(folder.empty() ? manifest.folder() : folder, "/", file);
}

}  // namespace

std::string PathOf(const proto::SnapshotManifest& manifest, const proto::SnapshotFile& file) {
  return Join(manifest, file.folder(), file.name());
}

std::string PathOf(const proto::SnapshotManifest& manifest, const proto::SnapshotShard& shard) {
  return Join(manifest, shard.folder(), shard.file());
}

StoredRange RangeOf(const proto::SnapshotPiece& piece) {
  return {.offset = piece.offset() - kPartBlockBytes, .bytes = PieceSpace(piece.bytes())};
}

uint64_t StoredBytesOf(const proto::SnapshotShard& shard) {
  uint64_t bytes = 0;
  for (const proto::SnapshotPiece& piece : shard.pieces()) bytes += RangeOf(piece).bytes;
  return bytes;
}

PieceHeader HeaderOf(const proto::SnapshotShard& shard, const proto::SnapshotPiece& piece) {
  return {.shard = {TableId(shard.table()), ShardIndex(shard.shard())},
          .generation = shard.generation(),
          .index = piece.kind() == proto::ReplicaPiece::UPDATES ? piece.first() : shard.index(),
          .kind = static_cast<proto::ReplicaPiece::Kind>(piece.kind()),
          .slot = piece.slot(),
          .first = piece.first(),
          .bytes = piece.bytes(),
          .checksum = piece.checksum()};
}

absl::StatusOr<Buffer> PayloadOf(const proto::SnapshotShard& shard,
                                 const proto::SnapshotPiece& piece, const Buffer& stored) {
  if (stored.size() != RangeOf(piece).bytes) {
    return absl::DataLossError(
        absl::StrCat("the piece has ", stored.size(), " bytes instead of ", RangeOf(piece).bytes));
  }
  COVEY_ASSIGN_OR_RETURN(const PieceHeader header,
                         DecodePieceHeader(stored.bytes().first(kPartBlockBytes)));
  if (header != HeaderOf(shard, piece)) {
    return absl::DataLossError(
        absl::StrCat("the piece is not the one that the manifest names: it is of shard ",
                     header.shard.index.value(), " of table ", header.shard.table.value(),
                     ", generation ", header.generation, ", record ", header.index));
  }
  COVEY_RETURN_IF_ERROR(CheckPayload(header, stored.bytes().subspan(kPartBlockBytes)));
  return stored.Slice(kPartBlockBytes, header.bytes);
}

absl::Status CheckPartHeader(const proto::SnapshotManifest& manifest,
                             const proto::SnapshotFile& file, const Buffer& header) {
  if (header.size() != kPartBlockBytes) return absl::DataLossError("the file has no header");
  COVEY_ASSIGN_OR_RETURN(const PartHeader found, DecodePartHeader(header.bytes()));
  const SnapshotName own = {.id = manifest.id(), .epoch = manifest.epoch()};
  const SnapshotName of = ParseSnapshotFolderName(file.folder()).value_or(own);
  const PartHeader wanted = {
      .job = manifest.state().view().job(), .snapshot = of.id, .epoch = of.epoch};
  if (found == wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the file is of another snapshot: ", found.snapshot,
                                          " of epoch ", found.epoch,
                                          found.job == wanted.job ? "" : " of another job"));
}

}  // namespace covey
