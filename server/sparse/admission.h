// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "server/sparse/row_index.h"

namespace covey::server {

// Which keys without a row get one. A key that has to come several times waits: it has an entry of
// the index, without a row. Each decision follows from the key, the version and the entry, so all
// replicas decide alike. A value.
struct Admission {
  uint32_t after = 1;      // the update that makes the row, of those that count; at least 1
  double probability = 1;  // that an update counts; in (0, 1]

  // Whether the first update that holds a key makes its row.
  bool takes_all() const { return after == 1 && probability == 1; }
  // Whether the update that makes this version counts. `mixed`: MixBits(key).
  bool Counts(uint64_t mixed, uint64_t version) const {
    constexpr double kUnit = 1.0 / (uint64_t{1} << 53);
    const uint64_t drawn = MixBits(mixed ^ MixBits(version)) >> 11;
    return static_cast<double>(drawn) * kUnit < probability;
  }
};

// The entry of a key that waits for admission has this bit, and in place of a row a number among
// those that wait.
inline constexpr uint32_t kPendingBit = uint32_t{1} << 31;
inline bool IsPending(const IndexEntry& entry) { return (entry.row & kPendingBit) != 0; }
inline uint32_t NumberOf(const IndexEntry& entry) { return entry.row & ~kPendingBit; }

}  // namespace covey::server
