// SPDX-License-Identifier: Apache-2.0

// The ways from keys to rows: reads and updates, in which many keys are under way at a time.

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/tensor/codec.h"
#include "common/tensor/row_copy.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {
namespace {

// Three blocks are under way in Apply; with 64 rows each they would not fit in the L1 cache.
constexpr size_t kBlock = RowValues::kOpenMax;
static_assert(kBlock <= kRowsPerUpdateMax);

void PrefetchBytes(const void* from, size_t bytes) {
  const char* const start = static_cast<const char*>(from);
  for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(start + line, 1);
}

}  // namespace

// Up to kBlock keys on their way from their lookup to the update of their rows.
struct SparseShard::Block {
  size_t first = 0;  // of the keys, in the update
  std::span<const uint64_t> keys;
  std::array<uint32_t, kBlock> rows;  // 0: the shard is full, and there is no such row
};

bool SparseShard::IsOfThis(const RowPlaces* places) const {
  return places != nullptr && places->shard_.lock().get() == this;
}

void SparseShard::Refresh(size_t keys, RowPlaces& places) const {
  const bool are_right = places.removals_ == removals_ || Planted(PlantedBug::kListOfOlderLayout);
  if (IsOfThis(&places) && are_right) {
    COVEY_CHECK(places.rows_.size() == keys);
    return;
  }
  places.shard_ = weak_from_this();
  places.removals_ = removals_;
  places.rows_.assign(keys, 0);
  places.entries_.assign(keys, nullptr);
}

void SparseShard::Note(const IndexEntry& entry, size_t key, RowPlaces& places) const {
  places.rows_[key] = entry.row;
  // Entries in runs may be freed.
  places.entries_[key] = index_.IsInPage(entry.place) ? &entry : nullptr;
}

IndexEntry* SparseShard::FindAgain(uint64_t key, uint32_t row, const IndexEntry* was) {
  // No other entry has this number, since no row has gone.
  if (was != nullptr && was->row == row) return const_cast<IndexEntry*>(was);
  return index_.Find(PlaceOf(key));
}

void SparseShard::FetchEntries(const Block& block, const RowPlaces* places) const {
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const IndexEntry* const was = places == nullptr ? nullptr : places->entries_[block.first + i];
    if (was != nullptr) {
      __builtin_prefetch(was, 1);
    } else {
      index_.Prefetch(PlaceOf(block.keys[i]));
    }
  }
}

IndexEntry* SparseShard::FindOrMake(uint64_t key, uint32_t new_row) {
  const uint64_t place = PlaceOf(key);
  if (!config_.admission.takes_all()) return FindOrAdmit(place, new_row);
  if (index_.size() < config_.rows_max) return &index_.FindOrInsert(place, new_row);
  IndexEntry* const found = index_.Find(place);
  totals_.refused += found == nullptr;
  return found;
}

void SparseShard::FindRows(Block& block, RowPlaces* places) {
  const uint32_t stamp = static_cast<uint32_t>(version_ + 1);
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const size_t number = block.first + i;
    const uint32_t new_row = numbers_.Next();
    const uint32_t known = places == nullptr ? 0 : places->rows_[number];
    IndexEntry* const entry = known != 0 ? FindAgain(block.keys[i], known, places->entries_[number])
                                         : FindOrMake(block.keys[i], new_row);
    block.rows[i] = entry == nullptr ? 0 : entry->row;
    if (entry == nullptr) continue;
    const bool is_new = entry->row == new_row;
    if (!is_new) SaveForCuts(*entry);
    entry->stamp = stamp;
    if (places != nullptr) Note(*entry, number, *places);
    if (is_new) BeginRow(block.keys[i], new_row);
    PrefetchBytes(values_.Row(block.rows[i]), layout_.value_bytes());
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      PrefetchBytes(slots_[slot].Row(block.rows[i]), slot_width(slot) * sizeof(float));
    }
    __builtin_prefetch(updates_.Row(block.rows[i]), 1);
  }
}

void SparseShard::UpdateRows(const UpdateContext& context, const float* gradient_sum,
                             const Block& block) {
  std::array<RowUpdate, kBlock> updates;
  std::array<uint32_t, kBlock> counts;
  std::array<size_t, kBlock> in_block;
  size_t size = 0;
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const uint32_t row = block.rows[i];
    if (row == 0) continue;
    updates[size].gradient_sum = gradient_sum + i * config_.width;
    updates[size].values = values_.Open(row, size);
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      updates[size].slots[slot] = slots_[slot].Row(row);
    }
    uint32_t& count = *updates_.Row(row);
    // Saturates, so that Adam's correction does not begin again after 4 billion updates.
    count += count != std::numeric_limits<uint32_t>::max();
    in_block[size] = i;
    counts[size++] = count;
  }
  optimizer_->Apply(context, std::span(updates).first(size), std::span(counts).first(size));
  for (size_t i = 0; i < size; ++i) {
    values_.Close(block.rows[in_block[i]], i, block.keys[in_block[i]], counts[i]);
  }
}

absl::StatusOr<uint64_t> SparseShard::Apply(std::span<const uint64_t> keys,
                                            std::span<const float> gradient_sum, uint64_t samples,
                                            double rate_factor, std::span<const Eviction> evictions,
                                            RowPlaces* places) {
  COVEY_RETURN_IF_ERROR(CheckUpdate(keys.size(), gradient_sum.size(), samples));
  // A list that was looked up here before has been checked.
  if (!IsOfThis(places)) COVEY_RETURN_IF_ERROR(CheckKeys(keys));
  for (const Eviction& eviction : evictions) Evict(eviction, keys);
  if (places != nullptr) Refresh(keys.size(), *places);
  const UpdateContext context = {
      .learning_rate = schedule_.RateAt(samples_ + samples) * rate_factor,
      .gradient_scale = 1 / static_cast<double>(samples)};
  // While the entries of one block come from memory, those of the block before it are looked up,
  // and the rows of the block before that are updated.
  const uint64_t refused_before = totals_.refused;
  std::array<Block, 3> under_way;
  const size_t blocks = (keys.size() + kBlock - 1) / kBlock;
  for (size_t i = 0; i < blocks + 2; ++i) {
    if (i < blocks) {
      Block& block = under_way[i % 3];
      block.first = i * kBlock;
      block.keys = keys.subspan(block.first, std::min(kBlock, keys.size() - block.first));
      FetchEntries(block, places);
    }
    if (i >= 1 && i - 1 < blocks) FindRows(under_way[(i - 1) % 3], places);
    if (i >= 2) {
      UpdateRows(context, gradient_sum.data() + (i - 2) * kBlock * config_.width,
                 under_way[(i - 2) % 3]);
    }
  }
  ++version_;
  samples_ += samples;
  return totals_.refused - refused_before;
}

void SparseShard::Read(std::span<const uint64_t> keys, std::span<uint8_t> rows,
                       RowPlaces* places) const {
  const size_t row_bytes = layout_.value_bytes();
  COVEY_CHECK(rows.size() == keys.size() * row_bytes);
  if (places != nullptr) Refresh(keys.size(), *places);
  std::vector<float> first_values(config_.width);
  // Rows that were found and are on their way from memory.
  constexpr size_t kRowsAhead = 16;
  std::array<const uint8_t*, kRowsAhead> found;
  const auto fetch_entry = [&](size_t i) {
    if (places == nullptr || places->rows_[i] == 0) index_.Prefetch(PlaceOf(keys[i]));
  };
  for (size_t i = 0; i < std::min(keys.size(), kAhead); ++i) fetch_entry(i);
  for (size_t i = 0; i < keys.size() + kRowsAhead; ++i) {
    if (i >= kRowsAhead) {
      const size_t ready = i - kRowsAhead;
      const std::span<uint8_t> to = rows.subspan(ready * row_bytes, row_bytes);
      if (const uint8_t* const row = found[ready % kRowsAhead]; row != nullptr) {
        CopyRow(row, row_bytes, to.data());
      } else {
        Initialize(config_.initializer, keys[ready] * config_.width, first_values);
        Encode(config_.type, first_values, to);
      }
    }
    if (i >= keys.size()) continue;
    if (i + kAhead < keys.size()) fetch_entry(i + kAhead);
    uint32_t row = places == nullptr ? 0 : places->rows_[i];
    if (row == 0) {
      const IndexEntry* const entry = index_.Find(PlaceOf(keys[i]));
      const bool has_row = entry != nullptr && !IsPending(*entry);
      if (has_row) row = entry->row;
      if (has_row && places != nullptr) Note(*entry, i, *places);
    }
    found[i % kRowsAhead] = row != 0 ? values_.Row(row) : nullptr;
    if (row != 0) PrefetchBytes(found[i % kRowsAhead], row_bytes);
  }
}

}  // namespace covey::server
