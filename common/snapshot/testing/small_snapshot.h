// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/store/folder.h"
#include "proto/snapshot.pb.h"

namespace covey {

// A snapshot of less than 3 KiB, for tests: a table "weights" of 5 x 4 elements with momentum, in
// two shards and two part files; a table "bias" of 3 elements; one group, and a data set that is
// partly trained. Its numbers depend on nothing but id and epoch, and on the snapshot to which it
// refers.
struct SmallSnapshot {
  struct File {
    std::string name;
    // As a server appends them: the header, then the frames of each piece.
    std::vector<std::vector<Buffer>> appended;
  };

  proto::SnapshotManifest manifest;
  std::vector<File> files;

  static SmallSnapshot Make(uint64_t id, uint64_t epoch);
  // The same, but what server-1 holds, shard 1 of "weights" and "bias", has not changed since
  // `earlier`: it refers to the files there.
  static SmallSnapshot MakeAfter(const SmallSnapshot& earlier, uint64_t id, uint64_t epoch);

  // All bytes by path: the part files and the manifest.
  std::map<std::string, std::string> Bytes() const;
  // Writes the snapshot as servers and scheduler do: parts, synced, then the manifest.
  absl::Status WriteTo(Folder& store) const;
  // The steps of WriteTo.
  absl::Status WritePart(const File& file, Folder& store) const;
  absl::Status PublishManifest(Folder& store) const;
};

}  // namespace covey
