// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/sparse_cut.h"

#include <algorithm>
#include <utility>

#include "common/base/planted_bug.h"

namespace covey::server {

SparseCut::SparseCut(std::shared_ptr<SparseShard> shard)
    : shard_(std::move(shard)),
      layout_(shard_->layout()),
      row_bytes_(layout_.row_bytes()),
      rows_(shard_->rows()),
      version_(shard_->version()),
      samples_(shard_->samples()),
      rows_made_(shard_->rows_made_),
      settled_(size_t{shard_->rows_made_} + 1) {
  for (const uint32_t free : shard_->free_rows_) settled_[free] = true;
  shard_->cuts_.push_back(this);
}

SparseCut::~SparseCut() { std::erase(shard_->cuts_, this); }

bool SparseCut::IsSettled(uint32_t row) const { return row > rows_made_ || settled_[row]; }

void SparseCut::Save(const IndexEntry& entry) {
  if (IsSettled(entry.row) || Planted(PlantedBug::kCutWithoutCopies)) return;
  // Also when it has been read: the number may become another row's.
  settled_[entry.row] = true;
  if (is_done_ || entry.place < next_) return;
  const SparseRow row = shard_->RowAt(entry);
  Copy copy{.stamp = row.stamp, .updates = row.updates, .elements = {}};
  copy.elements.reserve(layout_.elements());
  copy.elements.assign(row.values, row.values + layout_.width);
  for (size_t slot = 0; slot < layout_.slot_widths.size(); ++slot) {
    copy.elements.insert(copy.elements.end(), row.slots[slot],
                         row.slots[slot] + layout_.slot_widths[slot]);
  }
  saved_.emplace(entry.place, std::move(copy));
}

SparseRow SparseCut::RowOf(uint64_t place, const Copy& copy) const {
  const float* const elements = copy.elements.data();
  const float* const slots = elements + layout_.width;
  return {.key = shard_->KeyOf(place),
          .stamp = copy.stamp,
          .updates = copy.updates,
          .values = elements,
          .slots = {slots, slots + layout_.slot_widths[0]}};
}

RowPiece SparseCut::Next(size_t bytes_max) {
  const size_t rows_max = std::max<size_t>(bytes_max / row_bytes_, 1);
  found_.clear();
  // The piece is full, and the row at this place is the first of the next one.
  bool is_full = false;
  const auto add = [&](uint64_t place, const SparseRow& row) {
    is_full = found_.size() == rows_max;
    if (is_full) {
      next_ = place;
    } else {
      found_.push_back(row);
    }
    return !is_full;
  };
  auto saved = saved_.begin();
  const auto add_saved = [&] {
    if (!add(saved->first, RowOf(saved->first, saved->second))) return false;
    ++saved;
    return true;
  };
  if (!is_done_) {
    shard_->index_.VisitFrom(next_, [&](const IndexEntry& entry) {
      while (saved != saved_.end() && saved->first < entry.place) {
        if (!add_saved()) return false;
      }
      return IsSettled(entry.row) || add(entry.place, shard_->RowAt(entry));
    });
  }
  while (!is_full && saved != saved_.end()) add_saved();
  is_done_ |= !is_full;
  RowPiece piece = MakeRowPiece(found_, layout_);
  saved_.erase(saved_.begin(), saved);
  return piece;
}

}  // namespace covey::server
