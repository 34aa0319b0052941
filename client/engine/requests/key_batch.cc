// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/key_batch.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/net/frame_checksum.h"
#include "common/table/key_slots.h"
#include "common/tensor/kernels.h"

namespace covey {
namespace {

// Digits of 11 bits: their counts stay in the first cache, and ids below 4 million have two.
constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// Rows of the mini-batch stand in any order, so each is fetched this many rows ahead: enough to
// cover the way from memory.
constexpr size_t kRowsAhead = 12;

template <int kIsWrite>
void PrefetchRow(const float* row, size_t width) {
  constexpr size_t kFloatsPerLine = 16;
  for (size_t i = 0; i < width; i += kFloatsPerLine) __builtin_prefetch(row + i, kIsWrite);
}

}  // namespace

template <typename Digit>
void KeyBatch::SortBy(const Digit& digit) {
  std::fill(counts_.begin(), counts_.end(), 0);
  for (const Placed& placed : placed_) ++counts_[digit(placed)];
  uint32_t begin = 0;
  for (uint32_t& count : counts_) {
    const uint32_t end = begin + count;
    count = begin;
    begin = end;
  }
  sorted_.resize(placed_.size());
  for (const Placed& placed : placed_) sorted_[counts_[digit(placed)]++] = placed;
  placed_.swap(sorted_);
}

void KeyBatch::Sort(uint64_t differing_bits) {
  counts_.resize(kDigits);
  for (int shift = 0; shift < 64; shift += kDigitBits) {
    // All keys have this digit in common.
    if ((differing_bits >> shift) % kDigits == 0) continue;
    SortBy([shift](const Placed& placed) { return (placed.key >> shift) % kDigits; });
  }
  if (shard_ends_.size() == 1) return;
  counts_.resize(shard_ends_.size());
  SortBy([](const Placed& placed) { return placed.shard; });
}

void KeyBatch::Assign(std::span<const uint64_t> keys, std::span<const uint64_t> shard_ends) {
  COVEY_CHECK(keys.size() < std::numeric_limits<uint32_t>::max());
  COVEY_CHECK(!shard_ends.empty() && shard_ends.size() <= kKeySlots &&
              shard_ends.back() == kKeySlots);
  if (!std::equal(shard_ends.begin(), shard_ends.end(), shard_ends_.begin(), shard_ends_.end())) {
    shard_ends_.assign(shard_ends.begin(), shard_ends.end());
    shard_of_slots_.clear();
    for (size_t shard = 0; shard < shard_ends.size(); ++shard) {
      COVEY_CHECK(shard_ends[shard] > shard_of_slots_.size());
      shard_of_slots_.resize(shard_ends[shard], static_cast<uint16_t>(shard));
    }
  }
  placed_.resize(keys.size());
  uint64_t in_all = ~uint64_t{0};
  uint64_t in_any = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    placed_[i] = {.key = keys[i],
                  .position = static_cast<uint32_t>(i),
                  .shard = shard_of_slots_[SlotOfKey(keys[i])]};
    in_all &= keys[i];
    in_any |= keys[i];
  }
  Sort(in_any & ~in_all);

  keys_.clear();
  occurrences_.clear();
  order_.resize(keys.size());
  shard_begins_.assign(1, 0);
  for (size_t i = 0; i < placed_.size(); ++i) {
    const Placed& placed = placed_[i];
    while (shard_begins_.size() <= placed.shard) {
      shard_begins_.push_back(static_cast<uint32_t>(keys_.size()));
    }
    if (i == 0 || placed.key != placed_[i - 1].key) {
      keys_.push_back(placed.key);
      occurrences_.push_back(static_cast<uint32_t>(i));
    }
    order_[i] = placed.position;
  }
  occurrences_.push_back(static_cast<uint32_t>(keys.size()));
  shard_begins_.resize(shard_ends.size() + 1, static_cast<uint32_t>(keys_.size()));
  on_wire_.resize(shards());
  for (size_t shard = 0; shard < shards(); ++shard) {
    EncodedKeys& encoded = on_wire_[shard];
    encoded = Encoded(KeysOf(shard));
    SetName(encoded);
    encoded.checksum = FrameChecksum(encoded.frame);
  }
}

std::span<const uint64_t> KeyBatch::KeysOf(size_t shard) const {
  COVEY_CHECK(shard < shards());
  return std::span(keys_).subspan(shard_begins_[shard],
                                  shard_begins_[shard + 1] - shard_begins_[shard]);
}

const EncodedKeys& KeyBatch::OnWire(size_t shard) const {
  COVEY_CHECK(shard < shards());
  return on_wire_[shard];
}

void KeyBatch::SumRows(size_t shard, size_t width, std::span<const float> rows,
                       std::span<float> sums) const {
  COVEY_CHECK(rows.size() == size() * width && sums.size() == KeysOf(shard).size() * width);
  const size_t end = occurrences_[shard_begins_[shard + 1]];
  const bool adds_twice = Planted(PlantedBug::kSumDuplicatesTwice);
  float* to = sums.data();
  for (size_t i = shard_begins_[shard]; i < shard_begins_[shard + 1]; ++i, to += width) {
    for (size_t at = occurrences_[i]; at < occurrences_[i + 1]; ++at) {
      if (at + kRowsAhead < end) {
        PrefetchRow<0>(rows.data() + order_[at + kRowsAhead] * width, width);
      }
      const std::span<const float> row = rows.subspan(order_[at] * width, width);
      if (at == occurrences_[i]) {
        std::copy_n(row.data(), width, to);
      } else {
        AddInto({to, width}, row);
        if (adds_twice) AddInto({to, width}, row);
      }
    }
  }
}

void KeyBatch::PickRows(size_t shard, size_t width, std::span<const float> rows,
                        std::span<float> picked) const {
  COVEY_CHECK(rows.size() == size() * width && picked.size() == KeysOf(shard).size() * width);
  float* to = picked.data();
  for (size_t i = shard_begins_[shard]; i < shard_begins_[shard + 1]; ++i, to += width) {
    std::copy_n(rows.data() + order_[occurrences_[i]] * width, width, to);
  }
}

void KeyBatch::SpreadRows(size_t shard, size_t width, std::span<const float> of_shard,
                          std::span<float> rows) const {
  COVEY_CHECK(rows.size() == size() * width && of_shard.size() == KeysOf(shard).size() * width);
  const size_t end = occurrences_[shard_begins_[shard + 1]];
  const float* from = of_shard.data();
  for (size_t i = shard_begins_[shard]; i < shard_begins_[shard + 1]; ++i, from += width) {
    for (size_t at = occurrences_[i]; at < occurrences_[i + 1]; ++at) {
      if (at + kRowsAhead < end) {
        PrefetchRow<1>(rows.data() + order_[at + kRowsAhead] * width, width);
      }
      std::copy_n(from, width, rows.data() + order_[at] * width);
    }
  }
}

}  // namespace covey
