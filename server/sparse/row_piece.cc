// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_piece.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/random.h"

namespace covey::server {
namespace {

static_assert(std::endian::native == std::endian::little);

// Writes one array after the other.
class ArrayWriter {
 public:
  explicit ArrayWriter(uint8_t* to) : to_(to) {}

  template <typename T>
  void Add(const T* elements, size_t count) {
    const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(elements);
    to_ = std::copy_n(bytes, count * sizeof(T), to_);
  }

 private:
  uint8_t* to_;
};

}  // namespace

uint64_t DigestOf(const SparseRow& row, const RowLayout& layout) {
  uint64_t digest = MixBits(row.key ^ MixBits(uint64_t{row.stamp} << 32 | row.updates));
  digest = MixBits(digest ^ Crc32c({row.values, layout.stored_value_bytes()}));
  for (size_t slot = 0; slot < layout.slot_widths.size(); ++slot) {
    if (layout.slot_widths[slot] == 0) continue;
    digest = MixBits(digest ^ Crc32c({reinterpret_cast<const uint8_t*>(row.slots[slot]),
                                      layout.slot_widths[slot] * sizeof(float)}));
  }
  return digest;
}

RowPiece MakeRowPiece(std::span<const SparseRow> rows, const RowLayout& layout) {
  RowPiece piece{.rows = rows.size(), .frame = Buffer::Allocate(rows.size() * layout.row_bytes())};
  if (rows.empty()) return piece;
  ArrayWriter writer(piece.frame.MutableData());
  for (const SparseRow& row : rows) writer.Add(&row.key, 1);
  for (const SparseRow& row : rows) writer.Add(&row.stamp, 1);
  for (const SparseRow& row : rows) writer.Add(&row.updates, 1);
  for (const SparseRow& row : rows) writer.Add(row.values, layout.stored_value_bytes());
  for (size_t slot = 0; slot < layout.slot_widths.size(); ++slot) {
    if (layout.slot_widths[slot] == 0) continue;
    for (const SparseRow& row : rows) writer.Add(row.slots[slot], layout.slot_widths[slot]);
  }
  return piece;
}

absl::StatusOr<RowPieceReader> RowPieceReader::Open(const RowPiece& piece,
                                                    const RowLayout& layout) {
  if (piece.rows > piece.frame.size() ||  // so that the product does not overflow
      piece.frame.size() != piece.rows * layout.row_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a piece of ", piece.rows, " rows has ", piece.frame.size(), " bytes, not ",
                     layout.row_bytes(), " for each; it is of another table"));
  }
  return RowPieceReader(piece, layout);
}

RowPieceReader::RowPieceReader(const RowPiece& piece, const RowLayout& layout) : layout_(layout) {
  keys_ = reinterpret_cast<const uint64_t*>(piece.frame.data());
  stamps_ = reinterpret_cast<const uint32_t*>(keys_ + piece.rows);
  updates_ = stamps_ + piece.rows;
  values_ = reinterpret_cast<const uint8_t*>(updates_ + piece.rows);
  slots_[0] = reinterpret_cast<const float*>(values_ + piece.rows * layout.stored_value_bytes());
  slots_[1] = slots_[0] + piece.rows * layout.slot_widths[0];
}

SparseRow RowPieceReader::Row(size_t i) const {
  SparseRow row{.key = keys_[i],
                .stamp = stamps_[i],
                .updates = updates_[i],
                .values = values_ + i * layout_.stored_value_bytes()};
  for (size_t slot = 0; slot < layout_.slot_widths.size(); ++slot) {
    if (layout_.slot_widths[slot] == 0) continue;
    row.slots[slot] = slots_[slot] + i * layout_.slot_widths[slot];
  }
  return row;
}

}  // namespace covey::server
