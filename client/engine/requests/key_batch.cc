// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/key_batch.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/net/frame_checksum.h"
#include "common/table/key_slots.h"
#include "common/tensor/kernels.h"
#include "common/tensor/row_copy.h"

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

// A key that does not fit into one word with its shard and its place.
struct WideKey {
  uint64_t key;
  uint32_t place;
  uint32_t shard;
};

// All batches of a thread share this memory, so that it stays in the cache.
template <typename Item>
struct SortMemory {
  std::vector<Item> items;
  std::vector<Item> spare;
  std::vector<uint32_t> counts;

  static SortMemory& OfThread() {
    thread_local SortMemory memory;
    return memory;
  }
};

// Sorts the items by the bits of number(item) from `first_bit` to `last_bit`, and keeps the order
// of equal ones.
template <typename Item, typename Number>
void SortByBits(int first_bit, int last_bit, const Number& number, SortMemory<Item>& memory) {
  auto& [items, spare, counts] = memory;
  spare.resize(items.size());
  for (int shift = first_bit; shift < last_bit; shift += kDigitBits) {
    const uint64_t mask = (uint64_t{1} << std::min(kDigitBits, last_bit - shift)) - 1;
    counts.assign(kDigits, 0);
    for (const Item& item : items) ++counts[(number(item) >> shift) & mask];
    uint32_t begin = 0;
    for (uint32_t& count : counts) begin += std::exchange(count, begin);
    for (const Item& item : items) spare[counts[(number(item) >> shift) & mask]++] = item;
    items.swap(spare);
  }
}

}  // namespace

uint32_t KeyBatch::CountedShardOf(uint64_t key) {
  const uint32_t shard = shard_ends_.size() == 1 ? 0 : shard_of_slots_[SlotOfKey(key)];
  ++shard_sizes_[shard];
  return shard;
}

void KeyBatch::SortNarrow(std::span<const uint64_t> keys, const SortedBits& bits) {
  auto& memory = SortMemory<uint64_t>::OfThread();
  memory.items.resize(keys.size());
  const uint64_t key_mask = (uint64_t{1} << bits.of_key) - 1;
  for (size_t i = 0; i < keys.size(); ++i) {
    uint64_t item = CountedShardOf(keys[i]);
    item = item << bits.of_key | ((keys[i] >> bits.lowest) & key_mask);
    memory.items[i] = item << bits.of_place | i;
  }
  SortByBits(
      bits.of_place, bits.of_place + bits.of_key + bits.of_shard,
      [](uint64_t item) { return item; }, memory);
  const uint64_t place_mask = (uint64_t{1} << bits.of_place) - 1;
  for (size_t i = 0; i < keys.size(); ++i) {
    order_[i] = static_cast<uint32_t>(memory.items[i] & place_mask);
  }
}

void KeyBatch::SortWide(std::span<const uint64_t> keys, const SortedBits& bits) {
  auto& memory = SortMemory<WideKey>::OfThread();
  memory.items.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    memory.items[i] = {
        .key = keys[i], .place = static_cast<uint32_t>(i), .shard = CountedShardOf(keys[i])};
  }
  SortByBits(
      bits.lowest, bits.lowest + bits.of_key, [](const WideKey& item) { return item.key; }, memory);
  SortByBits(
      0, bits.of_shard, [](const WideKey& item) { return uint64_t{item.shard}; }, memory);
  for (size_t i = 0; i < keys.size(); ++i) order_[i] = memory.items[i].place;
}

void KeyBatch::Sort(std::span<const uint64_t> keys) {
  order_.resize(keys.size());
  shard_sizes_.assign(shard_ends_.size(), 0);
  uint64_t in_all = ~uint64_t{0};
  uint64_t in_any = 0;
  for (const uint64_t key : keys) {
    in_all &= key;
    in_any |= key;
  }
  const uint64_t differing = in_any & ~in_all;
  const int lowest = differing == 0 ? 0 : std::countr_zero(differing);
  const SortedBits bits = {
      .lowest = lowest,
      .of_key = static_cast<int>(std::bit_width(differing)) - lowest,
      .of_shard = static_cast<int>(std::bit_width(shard_ends_.size() - 1)),
      .of_place = static_cast<int>(std::bit_width(keys.size())),
  };
  if (bits.of_key + bits.of_shard + bits.of_place <= 64) {
    SortNarrow(keys, bits);
  } else {
    SortWide(keys, bits);
  }
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
  Sort(keys);

  keys_.resize(keys.size());
  occurrences_.resize(keys.size());
  shard_begins_.clear();
  size_t distinct = 0;
  size_t end = 0;
  for (const uint32_t size : shard_sizes_) {
    shard_begins_.push_back(static_cast<uint32_t>(distinct));
    const size_t begin = end;
    end += size;
    for (size_t i = begin; i < end; ++i) {
      const uint64_t key = keys[order_[i]];
      if (i > begin && key == keys_[distinct - 1]) continue;
      keys_[distinct] = key;
      occurrences_[distinct++] = static_cast<uint32_t>(i);
    }
  }
  shard_begins_.push_back(static_cast<uint32_t>(distinct));
  keys_.resize(distinct);
  occurrences_.resize(distinct);
  occurrences_.push_back(static_cast<uint32_t>(keys.size()));
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
        CopyRow(row.data(), width * sizeof(float), to);
      } else {
        AddInto({to, width}, row);
        if (adds_twice) AddInto({to, width}, row);
      }
    }
  }
}

void KeyBatch::SumAllRows(size_t width, std::span<const float> rows, std::span<float> sums) const {
  for (size_t shard = 0; shard < shards(); ++shard) {
    SumRows(shard, width, rows,
            sums.subspan(KeysBefore(shard) * width, KeysOf(shard).size() * width));
  }
}

void KeyBatch::PickRows(size_t shard, size_t width, std::span<const float> rows,
                        std::span<float> picked) const {
  COVEY_CHECK(rows.size() == size() * width && picked.size() == KeysOf(shard).size() * width);
  float* to = picked.data();
  for (size_t i = shard_begins_[shard]; i < shard_begins_[shard + 1]; ++i, to += width) {
    CopyRow(rows.data() + order_[occurrences_[i]] * width, width * sizeof(float), to);
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
      CopyRow(from, width * sizeof(float), rows.data() + order_[at] * width);
    }
  }
}

}  // namespace covey
