// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/wire_format.h"
#include "server/sparse/row_slab.h"
#include "server/table/row_memory.h"

namespace covey::server {

// The values of a shard's rows, by number, in their table's type. An update opens some rows,
// changes their values as float32, and closes them, which rounds: rows of float32 are opened where
// they lie, others are copied.
//
// How a row that is closed is rounded, where its type is not float32: at random, for updates that
// add to the values that they find (common/tensor/stochastic_codec.h), since rounding to nearest
// would lose all that is less than half a unit in the last place. The random bits are a function of
// the seed, the key, the column, and how many updates the row has had, so that all replicas, and a
// replay, have the same; a row of more than 2^32 updates has the same ones from then on. To
// nearest, for updates that compute values from a state that is not rounded, as FTRL's do: nothing
// adds up, and the error is half as large. First values are rounded to nearest, too.
//
// Actor-confined. Deterministic. Memory: that of the rows, in 4-byte words as RowSlab has them, and
// float32 copies of kOpenMax rows, where these are not float32.
class RowValues {
 public:
  // Rows that may be open at a time.
  static constexpr size_t kOpenMax = 32;
  enum class Rounding { kNearest, kAtRandom };

  struct Config {
    WireFormat type = WireFormat::kFloat32;  // without blocks
    size_t width = 0;
    Rounding rounding = Rounding::kAtRandom;
    uint64_t seed = 0;
  };
  // `memory` outlives it.
  RowValues(RowMemory& memory, const Config& config);

  // As RowSlab.
  void Grow(size_t rows) { words_.Grow(rows); }
  // The row as it is stored: RowLayout::stored_value_bytes().
  uint8_t* Row(size_t row) { return reinterpret_cast<uint8_t*>(words_.Row(row)); }
  const uint8_t* Row(size_t row) const { return reinterpret_cast<const uint8_t*>(words_.Row(row)); }

  // Places for the values of a row that will be stored: `width` floats, which are unspecified, and
  // Store. Between the two no row is open.
  std::span<float> NewValues(size_t row) { return {PlaceOf(row, 0), config_.width}; }
  void Store(size_t row);

  // The row's values, to be changed until Close. `place` is another one for each row that is open.
  // Precondition: place < kOpenMax.
  float* Open(size_t row, size_t place);
  // `updates` counts the row's, the one that changed it included.
  void Close(size_t row, size_t place, uint64_t key, uint32_t updates) {
    if (config_.type != WireFormat::kFloat32) Round(row, place, key, updates);
  }

  // In the order of columns. Products of two floats are exact in a double.
  double SumOfSquares(size_t row) const;

  const Config& config() const { return config_; }
  // Allocated.
  size_t bytes() const { return words_.bytes() + copies_.size() * sizeof(float); }

 private:
  float* PlaceOf(size_t row, size_t place) {
    return copies_.empty() ? reinterpret_cast<float*>(Row(row))
                           : copies_.data() + place * config_.width;
  }
  std::span<uint8_t> EncodedRow(size_t row) { return {Row(row), encoded_bytes_}; }
  void Round(size_t row, size_t place, uint64_t key, uint32_t updates);

  // Constant after construction.
  const Config config_;
  const size_t encoded_bytes_;  // of a row, without what fills its last word
  const uint64_t salt_;         // of the random bits

  RowSlab<float> words_;
  std::vector<float> copies_;  // of open rows, by place; empty where rows are float32
};

}  // namespace covey::server
