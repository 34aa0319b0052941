// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "proto/snapshot.pb.h"

namespace covey {

// The manifest of a snapshot as bytes. Pure. The snapshot is complete when this file, the last one
// of its folder, is there and intact.
//
//   offset  bytes   field (little endian)
//   0       8       "COVEYMAN"
//   8       2       major version, 1 to 3
//   10      2       minor version, 0
//   12      4       0
//   16      8       length of the message
//   24      4       CRC-32C of the message
//   28      4       CRC-32C of the above
//   32      length  SnapshotManifest, serialized; the file ends here
//
// Versions: a manifest with logs of updates is of version 3, another one that refers to files of
// earlier snapshots of version 2. All others are of version 1, whose readers know neither. A reader
// refuses another major version, and takes any minor one: it ignores fields that it does not know,
// and zeros that have got a meaning.
inline constexpr char kManifestName[] = "MANIFEST";
inline constexpr uint16_t kManifestMajor = 1;
inline constexpr uint16_t kManifestMajorWithReferences = 2;
inline constexpr uint16_t kManifestMajorWithLogs = 3;
inline constexpr uint16_t kManifestMinor = 0;

// "snapshot-000017-e42".
std::string SnapshotFolderName(uint64_t id, uint64_t epoch);

struct SnapshotName {
  uint64_t id = 0;
  uint64_t epoch = 0;
};
// Nothing when no folder of a job's snapshot has this name.
std::optional<SnapshotName> ParseSnapshotFolderName(absl::string_view folder);

// "import-gpt2": the folder of values that were imported under a name.
std::string ImportFolderName(absl::string_view name);
// Whether it is the folder of an imported snapshot, by its name.
bool IsImportFolderName(absl::string_view folder);
// Whether the folder of a snapshot may have this name: of a job's, or of an imported one.
bool IsSnapshotFolderName(absl::string_view folder);
// Whether the manifest is that of an imported snapshot, which is no state of a job.
bool IsImported(const proto::SnapshotManifest& manifest);
// Whether some content is in files of earlier snapshots. Precondition: the manifest is valid.
bool HasReferences(const proto::SnapshotManifest& manifest);
// Whether some content is in it as an earlier content and the updates since. Same precondition.
bool HasLogs(const proto::SnapshotManifest& manifest);

// What a user calls the newest complete snapshot of a job.
inline constexpr char kNewestSnapshot[] = "latest";

// The snapshot that a user means: the one in a folder, or the newest complete one of a job, of all
// or of those with an id.
struct SnapshotChoice {
  std::string folder;  // empty = the newest
  std::optional<uint64_t> id;

  // "latest", an id ("17"), or the folder itself. INVALID_ARGUMENT: no snapshot is called so.
  static absl::StatusOr<SnapshotChoice> Parse(absl::string_view called);
  // Precondition: no folder is named.
  bool Admits(const SnapshotName& name) const { return !id || *id == name.id; }
  // NOT_FOUND, for users: the store holds no such complete snapshot.
  absl::Status NotFound() const;
};

// Equal manifests give equal bytes. INVALID_ARGUMENT: as CheckManifest, so that nothing is
// published that a reader refuses; RESOURCE_EXHAUSTED: larger than kStoreReadMax.
absl::StatusOr<Buffer> EncodeManifest(const proto::SnapshotManifest& manifest);

// DATA_LOSS: damaged, or as CheckManifest; FAILED_PRECONDITION: another major version.
absl::StatusOr<proto::SnapshotManifest> DecodeManifest(std::span<const uint8_t> bytes);

// The path in the store of the manifest of the snapshot in `folder`.
std::string ManifestPath(absl::string_view folder);
// The manifest that is stored at ManifestPath(folder) as `bytes`. Errors as DecodeManifest, with
// the path; DATA_LOSS: it belongs to another folder, too.
absl::StatusOr<proto::SnapshotManifest> DecodeManifestOf(absl::string_view folder,
                                                         std::span<const uint8_t> bytes);

}  // namespace covey
