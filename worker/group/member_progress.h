// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/cluster/ids.h"

namespace covey::worker {

// What a member tells the others about its model when they meet after an interruption, so that all
// can agree on what is to be done again (group.proto, MemberProgress). Values.

// How many training examples are behind what is known of the round of one LOCAL table.
struct TableRound {
  uint64_t samples = 0;      // since the round began
  uint64_t all_samples = 0;  // since the group began
  // The step after which the round before was pushed, while its outer values have not been taken
  // in; 0 = none.
  Step pushed;
  uint64_t pushed_samples = 0;

  friend bool operator==(const TableRound&, const TableRound&) = default;
};

// What is known of the rounds of a bucket's LOCAL tables.
struct RoundProgress {
  // The newest step that was taken in.
  Step learned;
  std::vector<TableRound> tables;  // in the bucket's order

  friend bool operator==(const RoundProgress&, const RoundProgress&) = default;
};

struct BucketProgress {
  // The newest step of which the member has the values.
  Step finished;
  // Pulls that the member has begun, and whether the last of them is not over.
  uint64_t pulls = 0;
  bool waits_for_pull = false;
  // nullopt: nothing is known of LOCAL rounds.
  std::optional<RoundProgress> rounds;

  friend bool operator==(const BucketProgress&, const BucketProgress&) = default;
};

// By bucket; empty: the member has no model yet.
using MemberProgress = std::vector<BucketProgress>;

}  // namespace covey::worker
