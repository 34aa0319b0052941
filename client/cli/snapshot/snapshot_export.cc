// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_export.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/model/whole_file.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/format/safetensors_writer.h"
#include "common/runtime/process_main.h"
#include "common/snapshot/shard_entries.h"
#include "proto/replication.pb.h"
#include "server/replay/stored_content.h"

namespace covey::cli {
namespace {

std::vector<const proto::Table*> TablesByName(const proto::SnapshotManifest& manifest) {
  std::vector<const proto::Table*> tables;
  for (const proto::Table& table : manifest.state().view().tables()) tables.push_back(&table);
  std::sort(tables.begin(), tables.end(), [](const proto::Table* a, const proto::Table* b) {
    return a->spec().name() < b->spec().name();
  });
  return tables;
}

absl::Status CheckNotInterrupted() {
  if (!WaitForTermination(absl::ZeroDuration())) return absl::OkStatus();
  return absl::CancelledError("interrupted; nothing was written");
}

// Of a shard that the snapshot holds as its content.
absl::Status WritePieces(const SnapshotReader& snapshot, const proto::SnapshotShard& shard,
                         WholeFile& file) {
  for (const proto::SnapshotPiece& piece : shard.pieces()) {
    if (piece.kind() != proto::ReplicaPiece::VALUES) continue;
    COVEY_RETURN_IF_ERROR(CheckNotInterrupted());
    COVEY_ASSIGN_OR_RETURN(const Buffer values, snapshot.ReadPiece(shard, piece));
    COVEY_RETURN_IF_ERROR(file.Append(values.bytes()));
  }
  return absl::OkStatus();
}

// Shards, and the pieces of each, follow each other from a table's first element to its last.
absl::Status WriteValues(const SnapshotReader& snapshot, const proto::Table& table,
                         WholeFile& file) {
  for (const proto::Shard& shard : table.shards()) {
    const ShardEntries entries = EntriesOf(snapshot.manifest(), table.id(), shard.index());
    if (entries.logs.empty()) {
      COVEY_RETURN_IF_ERROR(WritePieces(snapshot, *entries.content, file));
      continue;
    }
    COVEY_RETURN_IF_ERROR(CheckNotInterrupted());
    COVEY_ASSIGN_OR_RETURN(const server::ContentCut content,
                           server::ReadStoredContent(snapshot, table, shard, entries));
    COVEY_RETURN_IF_ERROR(file.Append(content.values.bytes()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> ExportSnapshot(const SnapshotReader& snapshot, const std::string& path) {
  const proto::SnapshotManifest& manifest = snapshot.manifest();
  const std::vector<const proto::Table*> tables = TablesByName(manifest);
  if (tables.empty()) {
    return absl::NotFoundError("the snapshot has no tables, so nothing to export");
  }
  std::vector<SafetensorsTensor> tensors;
  uint64_t bytes = 0;
  for (const proto::Table* table : tables) {
    if (table->spec().has_sparse()) {
      return absl::UnimplementedError(absl::StrCat(
          "table '", table->spec().name(), "' is sparse; `covey export-rows ", table->spec().name(),
          " --snapshot ", manifest.folder(), "` writes its rows, and safetensors has no keys"));
    }
    if (table->spec().name() == "__metadata__") {
      return absl::InvalidArgumentError(
          "safetensors cannot hold a table that is named __metadata__");
    }
    tensors.push_back({.name = table->spec().name(),
                       .type = SafetensorsType::kF32,
                       .shape = {table->spec().shape().begin(), table->spec().shape().end()}});
    COVEY_ASSIGN_OR_RETURN(const uint64_t table_bytes, tensors.back().Bytes());
    bytes += table_bytes;
  }
  // "format": "pt" is what readers for PyTorch ask for.
  const std::string head =
      SafetensorsHead(tensors, {{"format", "pt"},
                                {"covey_version", kVersion},
                                {"covey_job", manifest.state().view().job_name()},
                                {"covey_snapshot", manifest.folder()}});
  bytes += head.size();
  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<WholeFile> file, WholeFile::Begin(path, bytes));
  COVEY_RETURN_IF_ERROR(file->Append({reinterpret_cast<const uint8_t*>(head.data()), head.size()}));
  for (const proto::Table* table : tables) {
    COVEY_RETURN_IF_ERROR(WriteValues(snapshot, *table, *file));
  }
  COVEY_RETURN_IF_ERROR(file->Finish());
  return bytes;
}

}  // namespace covey::cli
