// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"

namespace covey::worker {

// How many training examples are behind the values of a LOCAL table's round.
struct TableRound {
  uint64_t samples = 0;      // since the round began
  uint64_t all_samples = 0;  // since the group began
  // The step after which the preceding round was pushed, until its outer values are adopted; 0 =
  // none.
  Step pushed;
  uint64_t pushed_samples = 0;

  friend bool operator==(const TableRound&, const TableRound&) = default;
};

// The counts of the rounds of a bucket's LOCAL tables; their values travel beside it (RoundMemory).
struct RoundProgress {
  // The newest step whose gradient is part of the values.
  Step learned;
  std::vector<TableRound> tables;  // in the bucket's order

  friend bool operator==(const RoundProgress&, const RoundProgress&) = default;
};

// The bytes of a proto::RoundProgress.
Buffer EncodeRoundProgress(const RoundProgress& progress);
// The reverse, for bytes from another member. Allocates at most a fixed multiple of what `tables`
// tables take.
//   INVALID_ARGUMENT: other bytes, another number of tables, or a number beyond its limit.
absl::StatusOr<RoundProgress> DecodeRoundProgress(const Buffer& bytes, size_t tables);

}  // namespace covey::worker
