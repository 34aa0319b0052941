// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "client/operation_result.h"

namespace covey::client {

// Holds rows of a sparse table that were read before, by key, within the given Limits.
// Among the rows that could go for a new one, those that were found since the last time they could
// are passed over once (the CLOCK algorithm).
//
// Not thread-safe. Deterministic.
class KeptRows {
 public:
  struct Limits {
    size_t rows = 0;
    absl::Duration age;
    uint64_t updates = std::numeric_limits<uint64_t>::max();  // of the row's shard
  };
  // When and where a row was read.
  struct Reading {
    absl::Time time;
    uint32_t shard = 0;
    ShardVersion version;
  };
  // Keys that were looked up.
  struct Counts {
    uint64_t found = 0;
    uint64_t missing = 0;
    uint64_t stale = 0;  // kept, but beyond a limit
  };

  // Preconditions: width, shards and limits.rows are at least 1; at most 65,536 shards.
  KeptRows(size_t width, size_t shards, const Limits& limits);

  size_t size() const { return number_of_.size(); }
  const Counts& counts() const { return counts_; }

  // Copies the rows of the keys to their places in `rows`, which has one for each key. Appends the
  // places of those that are missing or stale to `unfilled`, ascending.
  void Find(absl::Time now, std::span<const uint64_t> keys, std::span<float> rows,
            std::vector<uint32_t>& unfilled);
  // Prefetches what Keep will touch for the key.
  void Prefetch(uint64_t key) const { number_of_.prefetch(key); }
  // Keeps a row that was read, unless a later version of it is kept. Readings may come in any
  // order.
  void Keep(uint64_t key, std::span<const float> row, const Reading& reading);
  // A version of the shard that was seen. Rows of an earlier generation are stale.
  void SetNewest(uint32_t shard, const ShardVersion& version) {
    newest_[shard] = std::max(newest_[shard], version);
  }
  void Remove(uint64_t key);

 private:
  // Two fill a cache line.
  struct alignas(32) Entry {
    uint64_t key = 0;
    uint64_t version = 0;
    int64_t time = 0;         // in nanoseconds
    uint32_t generation = 0;  // its last bits, which tell neighbors apart
    uint16_t shard = 0;
    bool was_found = false;
  };
  static_assert(sizeof(Entry) == 32);
  struct alignas(64) CacheLine {
    float elements[16];
  };

  // The row was read at `oldest` or later.
  bool IsFresh(const Entry& entry, int64_t oldest) const;
  // The number of an entry for one more row.
  uint32_t Take();
  float* Row(uint32_t number) {
    return reinterpret_cast<float*>(rows_.data()) + size_t{number} * stride_;
  }

  const size_t width_;
  const size_t stride_;  // from row to row, so that none lies in more cache lines than it has to
  const Limits limits_;
  absl::flat_hash_map<uint64_t, uint32_t> number_of_;
  std::vector<Entry> entries_;
  std::vector<CacheLine> rows_;  // of the entries
  std::vector<uint32_t> unused_;
  std::vector<ShardVersion> newest_;  // by shard
  size_t hand_ = 0;                   // the entry that could go next
  Counts counts_;
};

}  // namespace covey::client
