// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace covey {

// Elements of a row of a sparse table: of its values, and of each slot of its optimizer (0: there
// is none).
struct RowLayout {
  size_t width = 0;
  std::array<size_t, 2> slot_widths = {};

  size_t elements() const { return width + slot_widths[0] + slot_widths[1]; }
  // Of a row in a piece, with its key, its stamp and its count of updates
  // (server/sparse/row_piece.h).
  size_t row_bytes() const {
    return sizeof(uint64_t) + 2 * sizeof(uint32_t) + elements() * sizeof(float);
  }
};

}  // namespace covey
