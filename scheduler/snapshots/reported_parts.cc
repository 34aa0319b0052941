// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/reported_parts.h"

#include <set>
#include <utility>

namespace covey::scheduler {

void ReportedParts::Add(const proto::SnapshotReportRequest& report) {
  Entries reported;
  for (const proto::SnapshotShard& entry : report.shards()) {
    reported[{entry.table(), entry.shard()}].push_back(entry);
  }
  shards_.merge(std::move(reported));
  for (const proto::SnapshotFile& file : report.files()) {
    files_[{file.folder(), file.name()}] = file.bytes();
  }
}

uint64_t ReportedParts::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [place, size] : files_) bytes += place.first.empty() ? size : 0;
  return bytes;
}

void ReportedParts::Fill(proto::SnapshotManifest& manifest) const {
  std::set<std::pair<std::string, std::string>> used;
  for (const auto& [id, entries] : shards_) {
    for (const proto::SnapshotShard& entry : entries) {
      *manifest.add_shards() = entry;
      used.emplace(entry.folder(), entry.file());
    }
  }
  for (const auto& [place, bytes] : files_) {
    const auto& [folder, name] = place;
    // A manifest names no file of another snapshot for nothing.
    if (!folder.empty() && !used.contains(place)) continue;
    proto::SnapshotFile& file = *manifest.add_files();
    file.set_folder(folder);
    file.set_name(name);
    file.set_bytes(bytes);
  }
}

}  // namespace covey::scheduler
