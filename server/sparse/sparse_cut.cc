// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/sparse_cut.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace covey::server {

SparseCut::SparseCut(SparseShard& shard)
    : shard_(shard),
      layout_(shard.layout()),
      row_bytes_(layout_.row_bytes()),
      rows_(shard.rows()),
      version_(shard.version()),
      samples_(shard.samples()),
      rows_made_(shard.rows_made_),
      settled_(size_t{shard.rows_made_} + 1) {
  for (const uint32_t free : shard.free_rows_) settled_[free] = true;
  shard.cuts_.push_back(this);
}

SparseCut::~SparseCut() { std::erase(shard_.cuts_, this); }

bool SparseCut::IsSettled(uint32_t row) const { return row > rows_made_ || settled_[row]; }

void SparseCut::Save(const IndexEntry& entry) {
  if (IsSettled(entry.row)) return;
  // Also when it has been read: the number may become another row's.
  settled_[entry.row] = true;
  if (is_done_ || entry.place < next_) return;
  const SparseRow row = shard_.RowAt(entry);
  Copy copy = {row.stamp, row.updates};
  copy.reserve(row_bytes_ / sizeof(uint32_t));
  const auto append = [&](const float* elements, size_t count) {
    for (size_t i = 0; i < count; ++i) copy.push_back(std::bit_cast<uint32_t>(elements[i]));
  };
  append(row.values, layout_.width);
  for (size_t slot = 0; slot < layout_.slot_widths.size(); ++slot) {
    append(row.slots[slot], layout_.slot_widths[slot]);
  }
  saved_.emplace(entry.place, std::move(copy));
}

SparseRow SparseCut::RowOf(uint64_t place, const Copy& copy) const {
  SparseRow row{.key = shard_.KeyOf(place), .stamp = copy[0], .updates = copy[1]};
  const float* const elements = reinterpret_cast<const float*>(copy.data() + 2);
  row.values = elements;
  row.slots = {elements + layout_.width, elements + layout_.width + layout_.slot_widths[0]};
  return row;
}

RowPiece SparseCut::Next(size_t bytes_max) {
  const size_t rows_max = std::max<size_t>(bytes_max / row_bytes_, 1);
  found_.clear();
  auto saved = saved_.begin();
  // Those that were saved and lie before the place, which is where a full piece ends.
  const auto take_saved_before = [&](uint64_t place) {
    for (; saved != saved_.end() && saved->first < place; ++saved) {
      if (found_.size() == rows_max) {
        next_ = saved->first;
        return false;
      }
      found_.push_back(RowOf(saved->first, saved->second));
    }
    if (found_.size() < rows_max) return true;
    next_ = place;
    return false;
  };
  bool is_full = false;
  if (!is_done_) {
    shard_.index_.VisitFrom(next_, [&](const IndexEntry& entry) {
      if (!take_saved_before(entry.place)) {
        is_full = true;
        return false;
      }
      if (!IsSettled(entry.row)) found_.push_back(shard_.RowAt(entry));
      return true;
    });
  }
  // What was saved at the greatest places of all; one of the last place would be lost to a bound.
  for (; !is_full && saved != saved_.end(); ++saved) {
    if (found_.size() == rows_max) {
      next_ = saved->first;
      is_full = true;
      break;
    }
    found_.push_back(RowOf(saved->first, saved->second));
  }
  is_done_ |= !is_full;
  RowPiece piece = MakeRowPiece(found_, layout_);
  saved_.erase(saved_.begin(), saved);
  return piece;
}

}  // namespace covey::server
