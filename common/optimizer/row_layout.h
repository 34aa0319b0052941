// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/tensor/wire_format.h"

namespace covey {

// A row of a sparse table: the elements of its values and of each slot of its optimizer (0: there
// is none), and how the values are encoded. The slots are floats.
struct RowLayout {
  size_t width = 0;
  std::array<size_t, 2> slot_widths = {};
  WireFormat type = WireFormat::kFloat32;  // without blocks

  // Of the values, as a row of elements travels to clients.
  size_t value_bytes() const { return EncodedBytes(type, width); }
  // The same as it is stored: a multiple of 4, so that slots lie where floats do. The bytes behind
  // the elements are 0.
  size_t stored_value_bytes() const { return (value_bytes() + 3) / 4 * 4; }
  // Of a row in a piece, with its key, its stamp and its count of updates
  // (server/sparse/row_piece.h).
  size_t row_bytes() const {
    return sizeof(uint64_t) + 2 * sizeof(uint32_t) + stored_value_bytes() +
           (slot_widths[0] + slot_widths[1]) * sizeof(float);
  }
};

}  // namespace covey
