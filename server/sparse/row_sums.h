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
};

// Adds gradients up by key, for an update of several pushes: `keys` become all keys, ascending, and
// `sums` the sum of the rows of each, added in the order of `gradients`. So the bits depend on that
// order only, and are those of the same gradients added as dense ones, where none has a -0.
// Precondition (checked): each gradient has `width` elements for each key. Takes O(keys × log of
// the gradients).
void SumByKey(std::span<const KeyedRows> gradients, size_t width, std::vector<uint64_t>& keys,
              std::vector<float>& sums);

}  // namespace covey::server
