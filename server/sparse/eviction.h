// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "common/base/random.h"
#include "common/table/row_life_cycle.h"

namespace covey::server {

// Which rows of a shard go, or which keys that wait for admission. The head has sampled the shard
// for it (eviction_plan.h); it is part of an update's record, and each replica finds the same rows
// by it. A value.
struct Eviction {
  enum class Of { kRows, kPending };

  // Of those whose MixBits(key) lies in [first, last] the ones go that order below the bound. The
  // score comes first; among equal scores a mix of the key decides, which differs from one salt to
  // the next.
  Of of = Of::kRows;
  EvictBy by = EvictBy::kAge;  // what the score is
  uint64_t first = 0;
  uint64_t last = 0;
  uint32_t score = 0;
  uint64_t tie = 0;
  uint64_t salt = 0;

  // What orders a row. `mixed`: MixBits(key).
  using Order = std::pair<uint32_t, uint64_t>;
  static Order OrderOf(uint32_t score, uint64_t mixed, uint64_t salt) {
    return {score, MixBits(mixed ^ salt)};
  }
  bool Takes(uint32_t score_of_row, uint64_t mixed) const {
    return OrderOf(score_of_row, mixed, salt) < Order(score, tie);
  }

  friend bool operator==(const Eviction&, const Eviction&) = default;
};

}  // namespace covey::server
