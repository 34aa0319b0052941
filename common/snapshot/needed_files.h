// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "proto/snapshot.pb.h"

namespace covey {

// Names of files in the folders of a store, by folder. A folder has at least one.
using FilesByFolder = std::map<std::string, std::set<std::string>>;

// The files of earlier snapshots to which a snapshot refers. Pure. Precondition, here and below:
// the manifest is valid.
FilesByFolder ReferencesOf(const proto::SnapshotManifest& manifest);

// Bytes that a snapshot uses of the files of earlier ones: the pieces of its shards there, with
// their headers. Pure.
uint64_t ReusedBytes(const proto::SnapshotManifest& manifest);

// Adds the files to those that are needed.
void AddFiles(const FilesByFolder& files, FilesByFolder& needed);

// The files of the folder that are needed; they stay when the snapshot in it is removed.
std::set<std::string> NeededIn(const std::string& folder, const FilesByFolder& needed);

}  // namespace covey
