// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/sparse_cut.h"

#include <algorithm>
#include <utility>

#include "common/base/planted_bug.h"

namespace covey::server {

SparseCut::Part::Part(const RowLayout& row_layout, const RowNumbers& numbers)
    : layout(row_layout),
      size(numbers.in_use()),
      made(numbers.made()),
      settled(size_t{numbers.made()} + 1) {
  for (const uint32_t unused : numbers.unused()) settled[unused] = true;
}

SparseCut::SparseCut(std::shared_ptr<SparseShard> shard)
    : shard_(std::move(shard)),
      version_(shard_->version()),
      samples_(shard_->samples()),
      totals_(shard_->totals()),
      rows_(shard_->layout(), shard_->numbers_),
      pending_(kPendingLayout, shard_->pending_) {
  shard_->cuts_.push_back(this);
}

SparseCut::~SparseCut() { std::erase(shard_->cuts_, this); }

void SparseCut::Save(const IndexEntry& entry) {
  Part& part = PartWith(entry);
  if (part.IsSettled(NumberOf(entry)) || Planted(PlantedBug::kCutWithoutCopies)) return;
  // Also when it has been read: the number may become another row's.
  part.settled[NumberOf(entry)] = true;
  if (part.is_done || entry.place < part.next) return;
  const SparseRow row = shard_->RowAt(entry);
  Copy copy{.stamp = row.stamp, .updates = row.updates, .bytes = {}};
  copy.bytes.reserve(part.layout.row_bytes());
  copy.bytes.assign(row.values, row.values + part.layout.stored_value_bytes());
  for (size_t slot = 0; slot < part.layout.slot_widths.size(); ++slot) {
    const uint8_t* const from = reinterpret_cast<const uint8_t*>(row.slots[slot]);
    copy.bytes.insert(copy.bytes.end(), from, from + part.layout.slot_widths[slot] * sizeof(float));
  }
  part.saved.emplace(entry.place, std::move(copy));
}

SparseRow SparseCut::RowOf(uint64_t place, const Copy& copy, const RowLayout& layout) const {
  const uint8_t* const values = copy.bytes.data();
  const float* const slots = reinterpret_cast<const float*>(values + layout.stored_value_bytes());
  return {.key = shard_->KeyOf(place),
          .stamp = copy.stamp,
          .updates = copy.updates,
          .values = values,
          .slots = {slots, slots + layout.slot_widths[0]}};
}

RowPiece SparseCut::NextOf(Part& part, size_t bytes_max) {
  const size_t rows_max = std::max<size_t>(bytes_max / part.layout.row_bytes(), 1);
  found_.clear();
  // The piece is full, and the row at this place is the first of the next one.
  bool is_full = false;
  const auto add = [&](uint64_t place, const SparseRow& row) {
    is_full = found_.size() == rows_max;
    if (is_full) {
      part.next = place;
    } else {
      found_.push_back(row);
    }
    return !is_full;
  };
  auto saved = part.saved.begin();
  const auto add_saved = [&] {
    if (!add(saved->first, RowOf(saved->first, saved->second, part.layout))) return false;
    ++saved;
    return true;
  };
  if (!part.is_done) {
    shard_->index_.VisitFrom(part.next, [&](const IndexEntry& entry) {
      while (saved != part.saved.end() && saved->first < entry.place) {
        if (!add_saved()) return false;
      }
      return &PartWith(entry) != &part || part.IsSettled(NumberOf(entry)) ||
             add(entry.place, shard_->RowAt(entry));
    });
  }
  while (!is_full && saved != part.saved.end()) add_saved();
  part.is_done |= !is_full;
  RowPiece piece = MakeRowPiece(found_, part.layout);
  part.saved.erase(part.saved.begin(), saved);
  return piece;
}

}  // namespace covey::server
