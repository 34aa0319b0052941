// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/table/key_list.h"

namespace covey {

// The keys of a mini-batch, as they go to the shards of a sparse table: each key once, ascending,
// and the places in the batch where it occurred. Made once per mini-batch, for the pull of its rows
// and the push of their gradients.
//
// Not thread-safe; reading is. Keeps most of its memory from one batch to the next. Takes 15 to 30
// ns per key, less for ids below a million than for keys of 64 random bits.
class KeyBatch {
 public:
  // Replaces the batch. `shard_ends` are the slots (key_slots.h) at which the table's shards end,
  // ascending; the last is kKeySlots. Precondition (checked): at most 2^32 - 1 keys, and 65,536
  // shards.
  void Assign(std::span<const uint64_t> keys, std::span<const uint64_t> shard_ends);

  size_t size() const { return order_.size(); }  // keys of the mini-batch
  size_t distinct() const { return keys_.size(); }
  size_t shards() const { return shard_begins_.empty() ? 0 : shard_begins_.size() - 1; }
  // The slots at which the shards end, as given to Assign.
  std::span<const uint64_t> shard_ends() const { return shard_ends_; }
  // Distinct keys of the shards before this one. Precondition: shard <= shards().
  size_t KeysBefore(size_t shard) const { return shard_begins_[shard]; }
  // The distinct keys of all shards, one shard after the other.
  std::span<const uint64_t> keys() const { return keys_; }
  // The keys of a shard, ascending. Precondition: shard < shards().
  std::span<const uint64_t> KeysOf(size_t shard) const;
  // The same as they travel, with their name and checksum. Precondition: shard < shards().
  const EncodedKeys& OnWire(size_t shard) const;

  // From one row for each key of the mini-batch to one for each key of the shard: the sum of its
  // rows, in the order in which they stand in the mini-batch. Preconditions (checked): the sizes
  // are the numbers of keys times the width.
  void SumRows(size_t shard, size_t width, std::span<const float> rows,
               std::span<float> sums) const;
  // The same of all shards: one row for each of keys().
  void SumAllRows(size_t width, std::span<const float> rows, std::span<float> sums) const;
  // As SumRows, where rows of equal keys are equal, as those of a pull are: one row of each key,
  // and no sum.
  void PickRows(size_t shard, size_t width, std::span<const float> rows,
                std::span<float> picked) const;
  // The way back: each place in the mini-batch gets the row of its key. Places of other shards'
  // keys stay as they are. Preconditions as SumRows.
  void SpreadRows(size_t shard, size_t width, std::span<const float> of_shard,
                  std::span<float> rows) const;

 private:
  // The bits by which the keys of a mini-batch are sorted.
  struct SortedBits {
    int lowest = 0;    // in which the keys differ
    int of_key = 0;    // from the lowest to the highest in which they differ
    int of_shard = 0;  // of a shard's number
    int of_place = 0;  // of a place in the mini-batch
  };

  // Fills order_ with the places of the keys, by shard, by key, and by place; and shard_sizes_.
  void Sort(std::span<const uint64_t> keys);
  // By words of 64 bits, where shard, key and place fit in one, as those of ids below 2^40 do; and
  // by items of twice that size.
  void SortNarrow(std::span<const uint64_t> keys, const SortedBits& bits);
  void SortWide(std::span<const uint64_t> keys, const SortedBits& bits);
  uint32_t CountedShardOf(uint64_t key);

  std::vector<uint64_t> keys_;  // of all shards, one after the other
  std::vector<uint32_t>
      occurrences_;              // of keys_[i]: order_[occurrences_[i] .. occurrences_[i + 1])
  std::vector<uint32_t> order_;  // positions in the mini-batch
  std::vector<uint32_t> shard_begins_;  // in keys_, and the end
  std::vector<EncodedKeys> on_wire_;    // of each shard
  std::vector<uint16_t> shard_of_slots_;
  std::vector<uint64_t> shard_ends_;   // that shard_of_slots_ was made for
  std::vector<uint32_t> shard_sizes_;  // keys of the mini-batch in each shard
};

}  // namespace covey
