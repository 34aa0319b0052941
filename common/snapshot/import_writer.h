// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/store/folder.h"
#include "proto/snapshot.pb.h"
#include "proto/table.pb.h"

namespace covey {

// Pieces of an imported snapshot: as large as the shards of most tables, so that a shard that
// begins with these values reads little besides its own.
inline constexpr uint64_t kImportPieceElements = (uint64_t{1} << 20) / sizeof(float);

// The spec under which an imported snapshot names a table of float32: the name, the shape, and
// whatever else a spec needs. Readers use nothing but name and shape.
proto::TableSpec ImportedTable(absl::string_view name, std::span<const uint64_t> shape);

// Writes values of tables to a store, as an imported snapshot (proto/snapshot.proto). It is
// complete once Finish has returned OK; before, the folder has no manifest.
//
// Blocks. `store` outlives it. Memory: the manifest, and one piece. Errors as Folder's, besides
// these: INVALID_ARGUMENT, RESOURCE_EXHAUSTED: no manifest may name this table, or so many.
class ImportWriter {
 public:
  // The float32 values [first, first + count) of a table.
  using Read = absl::FunctionRef<absl::Status(uint64_t first, std::span<float> values)>;

  // `folder`: an import's; `unix_ms`: the time, for users.
  ImportWriter(Folder& store, const std::string& folder, uint64_t unix_ms);

  // Precondition: a spec of ImportedTable that TableDefinition::Parse accepts, of a new name.
  // Errors of `read` are returned.
  absl::Status Add(const proto::TableSpec& spec, Read read);
  // The size of the snapshot's files. Called once, at last.
  absl::StatusOr<uint64_t> Finish();

 private:
  absl::Status Append(const std::vector<Buffer>& frames);
  absl::Status AddPiece(Buffer values, uint64_t first, proto::SnapshotShard& shard);

  Folder& store_;
  proto::SnapshotManifest manifest_;
  uint64_t offset_ = 0;  // bytes of the file so far
  // Of the present piece. One for all: the manifest grows between freed pieces otherwise, and the
  // heap with it.
  Buffer values_ = Buffer::Allocate(kImportPieceElements * sizeof(float));
};

}  // namespace covey
