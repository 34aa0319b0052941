// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/recording/recording_entry.h"
#include "common/recording/recording_file.h"
#include "common/store/folder.h"
#include "proto/view.pb.h"

namespace covey {

// A record of a shard's history, as its head applied it.
struct RecordedUpdate {
  uint64_t index = 0;
  // The version that the update made; 0 = no update.
  uint64_t version = 0;
  AppliedRecord record;
  // Of the content after this record.
  std::optional<uint64_t> digest;
  // The file, as an index of Recording::files(), and where its gradient begins.
  size_t file = 0;
  uint64_t payload_offset = 0;
};

// What one generation of a shard has gone through.
struct ShardHistory {
  // The table, with this shard alone.
  proto::Table table;
  // Index of the record as of which the first content is: 0, or that of a shard's cut where it
  // continues a snapshot (server/replication/load_source.h).
  uint64_t begin = 0;
  // In growing order of index from begin + 1 on, without a gap.
  std::vector<RecordedUpdate> updates;

  const proto::Shard& shard() const { return table.shards(0); }
  // "table 'weights' shard 3", and the generation where it is not the only one.
  std::string name;
};

// The recording of a job: the files of all loops of all servers in one folder, put together. A
// shard's history begins with its first record. Where several servers have been its head one after
// the other, the records of a head count up to the point from which the next one went on.
//
// `folder` outlives it. Blocks. Memory: all entries, no gradient.
class Recording {
 public:
  // NOT_FOUND: no file of a recording is there. DATA_LOSS: a file is damaged, or files contradict
  // each other; names the file and the offset. FAILED_PRECONDITION: another version wrote it.
  static absl::StatusOr<Recording> Open(Folder& folder);

  // In growing order of table, shard and generation.
  const std::vector<ShardHistory>& shards() const { return shards_; }
  const std::vector<std::string>& files() const { return files_; }
  // For people: where the recording of a loop or of a shard ends early, and why.
  const std::vector<std::string>& notes() const { return notes_; }

  // The gradient of a record. NOT_FOUND: it was not recorded. DATA_LOSS: it is damaged; names file
  // and offset.
  absl::StatusOr<Buffer> ReadGradient(const RecordedUpdate& update) const;

 private:
  explicit Recording(Folder& folder) : folder_(&folder) {}

  Folder* folder_;
  std::vector<ShardHistory> shards_;
  std::vector<std::string> files_;
  std::vector<std::string> notes_;
};

}  // namespace covey
