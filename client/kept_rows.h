// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "client/operation_result.h"
#include "common/base/buffer.h"

namespace covey::client {

// Holds rows of a sparse table that were read before, by key, within the given Limits: a
// set-associative cache, in which a key has five places, and finding its row touches one cache line
// besides the row. Where all places of a key are taken, its row is kept from the second time on
// that it is read within a short time (the doorkeeper of TinyLFU: Einziger, Friedman and Manes
// 2017), and replaces the row that was found least often (CLOCK, with small counters). So keys that
// come once, which are most of those that are missing, cost nothing but their reading. A row may go
// while other sets have room.
//
// Not thread-safe. Deterministic.
class KeptRows {
 public:
  struct Limits {
    size_t rows = 0;
    absl::Duration age;
    uint64_t updates = std::numeric_limits<uint64_t>::max();  // of the row's shard
  };
  // Keys that were looked up.
  struct Counts {
    uint64_t found = 0;
    uint64_t missing = 0;
    uint64_t stale = 0;  // kept, but beyond a limit
  };

  // Takes the memory for all rows, of which the system gives pages as they come into use. Throws
  // std::bad_alloc. Preconditions: width and limits.rows are at least 1; the shards' ends are those
  // of Table.
  KeptRows(size_t width, const std::vector<uint64_t>& shard_ends, const Limits& limits);

  size_t size() const { return size_; }
  const Counts& counts() const { return counts_; }

  // Copies the rows of the keys to their places in `rows`, which has one for each key. Appends the
  // places of those that are missing or stale to `unfilled`, ascending.
  void Find(absl::Time now, std::span<const uint64_t> keys, std::span<float> rows,
            std::vector<uint32_t>& unfilled);
  // Keeps rows that were read at that time or later, from shards of these versions, one for each
  // key; but no row of which a later version is kept, or of whose shard a later generation was
  // seen. Readings may come in any order. Precondition: a version for each shard.
  void Keep(absl::Time time, std::span<const uint64_t> keys, std::span<const float> rows,
            std::span<const ShardVersion> versions);
  // Versions of the shards that were seen. Rows of an earlier generation go.
  void SetNewest(std::span<const ShardVersion> versions);
  void Remove(uint64_t key);

 private:
  static constexpr size_t kWays = 5;  // so that a set is one cache line
  static constexpr uint32_t kFoundMax = 3;
  // `turned_away` is cleared when so many of its bits are set. Of 4 to 9 this number gives the
  // highest share of found keys, by simulation with a million keys of Zipf's law with exponent 1.05
  // and room for a tenth: 85.7 %; 84.3 % without, 88.4 % if the future were known.
  static constexpr int kTurnedAwayMax = 4;
  static constexpr uint32_t kTurnedAwayBits = 19;

  // Keys that have the same places.
  struct alignas(64) Set {
    std::array<uint64_t, kWays> keys = {};
    std::array<uint32_t, kWays> read_at = {};  // when (Ticks); 0: no row
    uint32_t hand : 3 = 0;                     // the place that could go next
    // Two bits for each place: how often its row was found, up to kFoundMax.
    uint32_t found : 2 * kWays = 0;
    uint32_t turned_away : kTurnedAwayBits = 0;  // a bit, by hash, for a key that was not kept
  };
  static_assert(sizeof(Set) == 64);
  // Where a key is looked for, or was found.
  struct Place {
    size_t set = 0;
    size_t way = kWays;  // kWays: it has no row
  };

  size_t SetOf(uint64_t key) const;
  Place Look(size_t set, uint64_t key) const;
  // The time, in parts of the maximum age, so that it fits in 32 bits; at least 1. Forgets rows
  // that are too old for that.
  uint32_t Ticks(absl::Time time);
  bool IsFresh(const Place& place, uint64_t key, uint32_t now) const;
  void CountFound(const Place& place);
  // A place of the set for one more row, with no row any more. Its way is kWays where the row of
  // this key is not to be kept.
  Place Take(size_t set, uint64_t key);
  // The place for a row that was read. Its way is kWays where the row is not to be kept.
  Place PlaceFor(size_t set, uint64_t key, uint32_t read_at, uint64_t version);
  uint16_t ShardOf(uint64_t key) const;
  template <typename Search, typename Copy>
  void InStages(std::span<const uint64_t> keys, const Search& search, const Copy& copy);
  // Calls visit(place) for each row that is kept.
  template <typename Visit>
  void ForEach(const Visit& visit);
  void Drop(const Place& place);
  size_t NumberOf(const Place& place) const { return place.set * ways_ + place.way; }
  float* Row(const Place& place) const { return rows_ + NumberOf(place) * stride_; }

  const size_t width_;
  const size_t stride_;  // from row to row, so that none lies in more cache lines than it has to
  const Limits limits_;
  const absl::Duration tick_;
  const int64_t age_;  // in ticks
  const size_t ways_;  // kWays, or fewer where there are fewer rows
  const std::vector<uint64_t> shard_ends_;
  Buffer memory_;  // of the following
  std::span<Set> sets_;
  std::span<uint64_t> versions_;  // of their shards, when the rows were read
  float* rows_ = nullptr;
  absl::Time first_tick_ = absl::InfinitePast();
  std::vector<ShardVersion> newest_;  // by shard
  size_t size_ = 0;
  Counts counts_;
};

}  // namespace covey::client
