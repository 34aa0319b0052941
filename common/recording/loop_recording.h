// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/recording/recording.h"
#include "common/recording/recording_entry.h"
#include "common/recording/recording_file.h"
#include "proto/view.pb.h"

namespace covey {

// What one head applied to a shard without a pause.
struct HeadTerm {
  proto::Table table;  // with this shard alone
  uint64_t chain_epoch = 0;
  // Of the content before the first update.
  uint64_t index = 0;
  uint64_t version = 0;
  std::vector<RecordedUpdate> updates;
};

// Follows the entries of a loop's files, in their order. A value.
class LoopRecording {
 public:
  // The entries of a block of file `file`. INVALID_ARGUMENT: no loop writes them after those
  // before.
  absl::Status Add(const RecordingBlock& block, size_t file);

  const std::vector<HeadTerm>& terms() const { return terms_; }
  bool has_ended() const { return has_ended_; }

 private:
  absl::Status Begin(const ShardBegin& begin);
  absl::Status Apply(const AppliedRecord& record, RecordedUpdate place);
  absl::Status Note(const ContentDigest& digest);

  std::vector<HeadTerm> terms_;  // by stream
  bool has_ended_ = false;
};

}  // namespace covey
