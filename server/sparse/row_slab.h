// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "server/table/row_memory.h"

namespace covey::server {

// Numbered rows of `width` 4-byte elements each, in chunks. A new chunk moves no row,
// except within the first 2 MiB, so growth takes no longer than that copy. Rows of 5 elements or
// more begin at multiples of 16 bytes.
//
// Not thread-safe. Does not know which rows are in use, and shrinks only with Clear.
template <typename Element>
class RowSlab {
 public:
  static_assert(sizeof(Element) == 4);

  // `memory` outlives it. Precondition: width >= 1.
  RowSlab(RowMemory& memory, size_t width)
      : memory_(&memory),
        stride_(width <= 4 ? width : (width + 3) / 4 * 4),
        chunk_bits_(std::bit_width(std::max<size_t>(kChunkBytes / (stride_ * 4), 1)) - 1) {}

  // Makes the rows below `rows` addressable. New rows have unspecified bytes. Pointers from Row()
  // are no longer valid.
  void Grow(size_t rows) {
    if (rows <= rows_) return;
    const size_t chunk_rows = size_t{1} << chunk_bits_;
    if (rows_ < chunk_rows)
      GrowFirst(std::min(std::bit_ceil(std::max(rows, kRowsMin)), chunk_rows));
    while (rows_ < rows) {
      Buffer& chunk = chunks_.emplace_back(memory_->NewChunk(chunk_rows * stride_ * 4));
      rows_ += chunk_rows;
      starts_.push_back(reinterpret_cast<Element*>(chunk.MutableData()));
    }
  }

  // Precondition: row < the rows that Grow was called with.
  Element* Row(size_t row) {
    return starts_[row >> chunk_bits_] + (row & ((size_t{1} << chunk_bits_) - 1)) * stride_;
  }
  const Element* Row(size_t row) const { return const_cast<RowSlab*>(this)->Row(row); }

  // Allocated.
  size_t bytes() const { return rows_ * stride_ * 4; }

 private:
  static constexpr size_t kChunkBytes = 2 << 20;
  static constexpr size_t kRowsMin = 16;

  void GrowFirst(size_t rows) {
    Buffer chunk = memory_->NewChunk(rows * stride_ * 4);
    Element* const start = reinterpret_cast<Element*>(chunk.MutableData());
    if (rows_ > 0) {
      std::copy(starts_[0], starts_[0] + rows_ * stride_, start);
      chunks_[0] = std::move(chunk);
      starts_[0] = start;
    } else {
      chunks_.push_back(std::move(chunk));
      starts_.push_back(start);
    }
    rows_ = rows;
  }

  // Constant after construction.
  RowMemory* const memory_;
  const size_t stride_;      // elements between the beginnings of two rows
  const size_t chunk_bits_;  // a chunk holds 2^chunk_bits_ rows

  std::vector<Buffer> chunks_;
  std::vector<Element*> starts_;  // of the chunks
  size_t rows_ = 0;
};

}  // namespace covey::server
