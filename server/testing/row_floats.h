// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/tensor/codec.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/row_places.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {

// The values of a row, decoded.
inline std::vector<float> FloatsOf(const SparseRow& row, const RowLayout& layout) {
  std::vector<float> values(layout.width);
  Decode(layout.type, {row.values, layout.value_bytes()}, values);
  return values;
}

// The rows of these keys, decoded.
inline std::vector<float> ReadRows(const SparseShard& shard, std::span<const uint64_t> keys,
                                   RowPlaces* places = nullptr) {
  std::vector<uint8_t> rows(keys.size() * shard.layout().value_bytes());
  shard.Read(keys, rows, places);
  std::vector<float> values(keys.size() * shard.width());
  DecodeRows(shard.layout().type, shard.width(), rows, values);
  return values;
}

}  // namespace covey::server
