// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/scheduler.pb.h"
#include "proto/snapshot.pb.h"

namespace covey::scheduler {

// The parts of a snapshot that servers have reported under its order. Of two reports of a shard the
// first counts. A value.
class ReportedParts {
 public:
  void Add(const proto::SnapshotReportRequest& report);
  // That are reported.
  size_t shards() const { return shards_.size(); }
  // Of the snapshot's own files.
  uint64_t bytes() const;
  // Sets shards and files of the manifest.
  void Fill(proto::SnapshotManifest& manifest) const;

 private:
  // By table and shard: the content, and its logs.
  using Entries = std::map<std::pair<uint32_t, uint32_t>, std::vector<proto::SnapshotShard>>;

  Entries shards_;
  // Sizes, by SnapshotFile.folder and name.
  std::map<std::pair<std::string, std::string>, uint64_t> files_;
};

}  // namespace covey::scheduler
