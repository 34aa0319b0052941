// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/snapshot/snapshot_reader.h"
#include "proto/snapshot.pb.h"

namespace covey::cli {

// Snapshots as `covey snapshot` prints them: for humans, and as JSON for programs. Pure. Times are
// UTC.

std::string SnapshotsText(const std::vector<SnapshotSummary>& snapshots);
std::string SnapshotsJson(const std::vector<SnapshotSummary>& snapshots);

// A complete snapshot, of so many bytes in its own folder.
std::string SnapshotText(const proto::SnapshotManifest& manifest, uint64_t bytes);
std::string SnapshotJson(const proto::SnapshotManifest& manifest, uint64_t bytes);

// The paths in the store of all files that the snapshot needs, those of earlier snapshots included,
// one per line; its manifest, which makes it complete, is the last.
std::string SnapshotFilesText(const proto::SnapshotManifest& manifest);
// Likewise.
std::string SnapshotFilesJson(const proto::SnapshotManifest& manifest);

}  // namespace covey::cli
