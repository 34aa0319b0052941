// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/needed_files.h"

#include "common/snapshot/stored_piece.h"

namespace covey {

FilesByFolder ReferencesOf(const proto::SnapshotManifest& manifest) {
  FilesByFolder references;
  for (const proto::SnapshotFile& file : manifest.files()) {
    if (!file.folder().empty()) references[file.folder()].insert(file.name());
  }
  return references;
}

uint64_t ReusedBytes(const proto::SnapshotManifest& manifest) {
  uint64_t bytes = 0;
  for (const proto::SnapshotShard& shard : manifest.shards()) {
    if (!shard.folder().empty()) bytes += StoredBytesOf(shard);
  }
  return bytes;
}

void AddFiles(const FilesByFolder& files, FilesByFolder& needed) {
  for (const auto& [folder, names] : files) needed[folder].insert(names.begin(), names.end());
}

std::set<std::string> NeededIn(const std::string& folder, const FilesByFolder& needed) {
  const auto found = needed.find(folder);
  return found == needed.end() ? std::set<std::string>() : found->second;
}

}  // namespace covey
