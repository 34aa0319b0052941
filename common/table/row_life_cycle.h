// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey {

// What becomes of new keys where a sparse table holds as many rows as it may.
enum class WhenFull { kRefuse, kSkip, kEvict };

// Which rows of a sparse table go first.
enum class EvictBy { kAge, kCount, kNorm };

// Which new keys of a sparse table get a row, and which rows go: SparseRows of table.proto. Plain
// value.
struct RowLifeCycle {
  uint64_t rows_max = 0;  // of the whole table, about; 0 = no other limit than those of shards
  WhenFull when_full = WhenFull::kRefuse;
  EvictBy evict_by = EvictBy::kAge;
  uint32_t admit_after = 1;      // the update that makes a row; at least 1
  double admit_probability = 1;  // in (0, 1]
};

}  // namespace covey
