// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_delete.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/needed_files.h"
#include "common/snapshot/snapshot_reader.h"

namespace covey::cli {
namespace {

using Snapshots = std::vector<SnapshotSummary>;

Snapshots::const_iterator Find(const Snapshots& snapshots, const std::string& folder) {
  return std::find_if(snapshots.begin(), snapshots.end(),
                      [&](const SnapshotSummary& snapshot) { return snapshot.folder == folder; });
}

std::vector<std::string> NeededBy(const Snapshots& snapshots, const std::string& folder) {
  std::vector<std::string> needed_by;
  for (const SnapshotSummary& snapshot : snapshots) {
    if (snapshot.references.contains(folder)) needed_by.push_back(snapshot.folder);
  }
  return needed_by;
}

absl::Status NotFound(const Snapshots& snapshots, const std::string& folder) {
  if (const auto needed_by = NeededBy(snapshots, folder); !needed_by.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " is deleted; what remains of it is part of ",
                                            needed_by.back(), ", and goes with that one"));
  }
  return absl::NotFoundError(absl::StrCat("there is no snapshot ", folder,
                                          " in the store; covey snapshot list shows all"));
}

// The newest complete snapshot of a job is what a job would restore, and a newer one may be in the
// making.
absl::Status CheckDeletable(const Snapshots& snapshots, const SnapshotSummary& asked) {
  const auto newer = Find(snapshots, asked.folder) + 1;
  const bool has_newer = std::any_of(newer, snapshots.end(), [](const SnapshotSummary& snapshot) {
    return snapshot.complete.ok();
  });
  const bool is_import = IsImportFolderName(asked.folder);
  if (is_import ? !asked.complete.ok() : !has_newer) {
    return absl::FailedPreconditionError(
        is_import
            ? absl::StrCat(asked.folder,
                           " is not complete: an import may be writing it; --force deletes it")
        : asked.complete.ok()
            ? absl::StrCat(asked.folder, " is the newest complete snapshot; --force deletes it")
            : absl::StrCat(asked.folder,
                           " is not complete, and no newer snapshot is: a cluster may be writing "
                           "it; --force deletes it"));
  }
  const auto unknown = std::find_if(newer, snapshots.end(), [](const SnapshotSummary& snapshot) {
    return !snapshot.has_manifest && !absl::IsNotFound(snapshot.complete);
  });
  if (is_import || unknown == snapshots.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      unknown->folder, " may refer to files of ", asked.folder, ", and cannot be read: ",
      unknown->complete.message(), "; delete that one before, or --force deletes this one"));
}

}  // namespace

absl::StatusOr<DeletedSnapshot> DeleteSnapshot(Folder& store, const std::string& folder,
                                               bool force) {
  COVEY_ASSIGN_OR_RETURN(Snapshots snapshots, ListSnapshots(store));
  const auto asked = Find(snapshots, folder);
  if (asked == snapshots.end()) return NotFound(snapshots, folder);
  if (!force) COVEY_RETURN_IF_ERROR(CheckDeletable(snapshots, *asked));
  const FilesByFolder references = asked->references;
  // What a snapshot refers to that is not listed is there for such references only.
  std::set<std::string> remains;
  for (const auto& [other, files] : references) {
    if (Find(snapshots, other) == snapshots.end()) remains.insert(other);
  }
  snapshots.erase(asked);

  FilesByFolder needed;
  for (const SnapshotSummary& snapshot : snapshots) AddFiles(snapshot.references, needed);
  const DeletedSnapshot deleted = {.kept = NeededIn(folder, needed),
                                   .needed_by = NeededBy(snapshots, folder)};
  COVEY_RETURN_IF_ERROR(store.Remove(folder, kManifestName, deleted.kept));
  for (const std::string& other : remains) {
    const absl::Status status = store.Remove(other, kManifestName, NeededIn(other, needed));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return deleted;
}

}  // namespace covey::cli
