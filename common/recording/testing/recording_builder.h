// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/recording/recording_entry.h"
#include "common/recording/recording_file.h"
#include "proto/view.pb.h"

namespace covey {

// Makes a file of a recording, entry by entry, for tests.
class RecordingBuilder {
 public:
  explicit RecordingBuilder(const RecordingFileId& id = {.node = 2, .loop = 1, .number = 0});

  RecordingBuilder& Add(const RecordingEntry& entry);
  // A record with a gradient: format, size and checksum are filled in. float32.
  RecordingBuilder& Add(AppliedRecord record, const std::vector<float>& gradient);
  // Ends the block.
  RecordingBuilder& EndBlock();

  // Up to the last block that was ended.
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::vector<uint8_t> entries_;
  std::string payloads_;
};

// Table 1, "weights", of `shards` shards with 4 elements: this shard alone. SGD at rate 0.1.
proto::Table SmallTable(uint32_t shard = 0, uint32_t shards = 1, uint64_t generation = 3);
// The beginning of stream `stream` before the first record.
ShardBegin BeginOf(const proto::Table& table, uint64_t stream = 0, uint64_t chain_epoch = 3);
// An update by the push of a group.
AppliedRecord UpdateOf(uint64_t group, uint64_t step, uint64_t stream = 0);

}  // namespace covey
