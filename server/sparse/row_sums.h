// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace covey::server {

// A gradient of some rows: a row for each key. The keys ascend, and none comes twice.
struct KeyedRows {
  std::span<const uint64_t> keys;
  std::span<const float> rows;
  uint64_t samples = 0;
};

// The sum of such gradients.
struct RowSums {
  std::vector<uint64_t> keys;     // ascending
  std::vector<float> rows;        // a row for each
  std::vector<uint64_t> samples;  // of the gradients that hold the key
};

// Adds gradients up by key, for an update of several pushes, in the order of `gradients`. So the
// bits depend on that order only, and are those of the same gradients added as dense ones, where
// none has a -0. Replaces what `sums` holds. Precondition (checked): each gradient has `width`
// elements for each key. Takes O(keys × log of the gradients).
void SumByKey(std::span<const KeyedRows> gradients, size_t width, RowSums& sums);

// Multiplies each row by `samples` / its own samples. Divided by `samples`, which is how updates
// are applied, it is then the mean over the gradients that hold the row, and not over all. A row
// that all hold keeps its bits. Precondition (checked): no row has 0 samples.
void StandForAll(uint64_t samples, size_t width, RowSums& sums);

}  // namespace covey::server
