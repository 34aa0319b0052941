// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/optimizer/row_layout.h"

namespace covey::server {

// A row of a sparse table, or a key that waits for admission, which has no values and no slots. The
// pointers are valid as long as what it was read from.
struct SparseRow {
  uint64_t key = 0;
  uint32_t stamp = 0;                      // the last 32 bits of the version that last updated it
  uint32_t updates = 0;                    // that it was part of
  const uint8_t* values = nullptr;         // encoded, as they are stored
  std::array<const float*, 2> slots = {};  // null where the optimizer has none
};

// Of keys that wait for admission.
inline constexpr RowLayout kPendingLayout = {};

// Of everything in the row. Digests of rows are added up, so that their order does not matter.
uint64_t DigestOf(const SparseRow& row, const RowLayout& layout);

// Rows of a sparse table on their way to another server or to a store: one frame of arrays, each
// with one entry per row.
//
//     keys (8 bytes) │ stamps (4) │ updates (4) │ values (width × 4) │ slot 0 │ slot 1
//
// All little endian. Values of 2 bytes take as many words of 4 as they need; the last 2 bytes of a
// row of odd width are 0. The key is the program's, so any cut of the table into shards can take
// the rows.
struct RowPiece {
  size_t rows = 0;
  Buffer frame;
};

RowPiece MakeRowPiece(std::span<const SparseRow> rows, const RowLayout& layout);

// Reads a piece, which outlives it.
class RowPieceReader {
 public:
  // INVALID_ARGUMENT: the frame has another size than the rows of this layout.
  static absl::StatusOr<RowPieceReader> Open(const RowPiece& piece, const RowLayout& layout);

  // Precondition: i < piece.rows.
  SparseRow Row(size_t i) const;

 private:
  RowPieceReader(const RowPiece& piece, const RowLayout& layout);

  RowLayout layout_;
  const uint64_t* keys_;
  const uint32_t* stamps_;
  const uint32_t* updates_;
  const uint8_t* values_;
  std::array<const float*, 2> slots_;
};

}  // namespace covey::server
