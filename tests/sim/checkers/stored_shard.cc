// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/stored_shard.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/tensor/codec.h"
#include "server/replay/stored_content.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/sparse_cut.h"

namespace covey::sim {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

std::vector<float> Elements(const Buffer& array) {
  const std::span<const float> floats = array.As<float>();
  return {floats.begin(), floats.end()};
}

// Reads all rows of the cut, and the keys that waited.
absl::Status ReadRows(server::SparseCut& cut, StoredShard& stored) {
  for (const bool waits : {false, true}) {
    const RowLayout layout = waits ? server::kPendingLayout : cut.layout();
    for (;;) {
      const server::RowPiece piece = waits ? cut.NextPending(kPieceBytes) : cut.Next(kPieceBytes);
      if (piece.rows == 0) break;
      COVEY_ASSIGN_OR_RETURN(const auto reader, server::RowPieceReader::Open(piece, layout));
      for (size_t i = 0; i < piece.rows; ++i) {
        const server::SparseRow row = reader.Row(i);
        stored.rows_digest += server::DigestOf(row, layout);
        if (waits) continue;
        std::vector<float>& values = stored.rows[row.key];
        values.resize(layout.width);
        Decode(layout.type, {row.values, layout.value_bytes()}, values);
        if (layout.slot_widths[0] == 0) continue;
        stored.row_slots[row.key].assign(row.slots[0], row.slots[0] + layout.slot_widths[0]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

const proto::Table& TableOf(const proto::SnapshotManifest& manifest,
                            const proto::SnapshotShard& entry) {
  const auto& tables = manifest.state().view().tables();
  return *std::find_if(tables.begin(), tables.end(),
                       [&](const proto::Table& one) { return one.id() == entry.table(); });
}

absl::StatusOr<StoredShard> ReadStoredShard(const SnapshotReader& snapshot,
                                            const ShardEntries& entries) {
  const proto::SnapshotShard& entry = *entries.content;
  const proto::Table& table = TableOf(snapshot.manifest(), entry);
  COVEY_ASSIGN_OR_RETURN(
      const server::ContentCut content,
      server::ReadStoredContent(snapshot, table, table.shards(static_cast<int>(entry.shard())),
                                entries));
  StoredShard stored;
  for (const proto::ReplicaRecord& part : content.Describe()) stored.record.MergeFrom(part);
  if (content.rows != nullptr) {
    COVEY_RETURN_IF_ERROR(ReadRows(*content.rows, stored));
    stored.record.set_digest(content.Digest(std::array{stored.rows_digest}));
    return stored;
  }
  stored.values = Elements(content.values);
  for (const Buffer& slot : content.slots) stored.slots.push_back(Elements(slot));
  stored.record.set_digest(content.Digest());
  return stored;
}

}  // namespace covey::sim
