// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/needed_files.h"
#include "common/store/folder.h"
#include "proto/snapshot.pb.h"

namespace covey {

// A snapshot in a store, as a list shows it.
struct SnapshotSummary {
  std::string folder;
  // As the folder's name says; 0 = imported.
  uint64_t id = 0;
  uint64_t epoch = 0;
  // OK = complete: the manifest is valid, and all files are there in their sizes. Otherwise why
  // not; NOT_FOUND: there is no manifest, so the snapshot is being made, or was given up.
  absl::Status complete;
  // Whether there is a valid manifest; then what follows is known.
  bool has_manifest = false;
  // The files of earlier snapshots to which it refers.
  FilesByFolder references;
  // Of its own files and the manifest; and what it uses of earlier snapshots. When it was ordered;
  // its tables; the highest step of a group, 0 = of none.
  uint64_t bytes = 0;
  uint64_t reused_bytes = 0;
  uint64_t ordered_unix_ms = 0;
  uint64_t tables = 0;
  uint64_t step = 0;
};

// The snapshots of a store, in growing order of (id, epoch), imported ones first and by name. Reads
// all manifests, one at a time. Leaves out what remains of a removed snapshot because a listed one
// refers to its files. Errors as Folder::List.
absl::StatusOr<std::vector<SnapshotSummary>> ListSnapshots(Folder& store);

// The folder of the snapshot that a user names (SnapshotChoice::Parse). Of several with one id it
// is the newest complete one; imported ones have no id, and are never the newest. NOT_FOUND: the
// store holds no such complete snapshot; a folder's name is not looked up. INVALID_ARGUMENT: no
// snapshot is called so. Errors as Folder::List.
absl::StatusOr<std::string> FindSnapshot(Folder& store, absl::string_view called);

// Reads a complete snapshot, and verifies what it reads. `store` outlives it. Blocks. Memory: the
// manifest, and one piece. Errors name file and offset.
class SnapshotReader {
 public:
  // Called after each piece with the bytes that were verified, of all. A status that is not OK ends
  // the verification, and is its result.
  using Progress = absl::FunctionRef<absl::Status(uint64_t done, uint64_t all)>;

  // INVALID_ARGUMENT: no snapshot's folder has this name; NOT_FOUND: no such folder, or it has no
  // manifest; DATA_LOSS: the manifest is damaged, or a file, also one of an earlier snapshot to
  // which it refers, is missing or has another size;
  // FAILED_PRECONDITION: written by another version; others as Folder::Read.
  static absl::StatusOr<SnapshotReader> Open(Folder& store, absl::string_view folder);

  const proto::SnapshotManifest& manifest() const { return manifest_; }
  // Of its own files and the manifest; and what it uses of the files of earlier snapshots.
  uint64_t bytes() const { return bytes_; }
  uint64_t reused_bytes() const { return reused_bytes_; }

  // The payload of a piece of the manifest. DATA_LOSS: damaged.
  absl::StatusOr<Buffer> ReadPiece(const proto::SnapshotShard& shard,
                                   const proto::SnapshotPiece& piece) const;

  // Reads every byte of its own files, and of what it uses of earlier snapshots. DATA_LOSS: the
  // first damage. Pieces in its own files that the manifest does not name, which a server that
  // repeated a shard may leave, must be intact, too.
  absl::Status Verify(Progress progress) const;

 private:
  SnapshotReader(Folder& store, proto::SnapshotManifest manifest, uint64_t bytes)
      : store_(&store),
        manifest_(std::move(manifest)),
        bytes_(bytes),
        reused_bytes_(ReusedBytes(manifest_)) {}

  absl::Status VerifyHeader(const proto::SnapshotFile& file) const;
  absl::Status VerifyFile(const proto::SnapshotFile& file, uint64_t& done, Progress progress) const;
  // Of an earlier snapshot.
  absl::Status VerifyPieces(const proto::SnapshotFile& file, uint64_t& done,
                            Progress progress) const;

  Folder* store_;
  proto::SnapshotManifest manifest_;
  uint64_t bytes_;
  uint64_t reused_bytes_;
};

}  // namespace covey
