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

// A complete snapshot, of so many bytes.
std::string SnapshotText(const proto::SnapshotManifest& manifest, uint64_t bytes);
std::string SnapshotJson(const proto::SnapshotManifest& manifest, uint64_t bytes);

}  // namespace covey::cli
