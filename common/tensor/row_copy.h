// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace covey {

// Copies a row of `width` floats; they must not overlap. Where many rows are copied one by one,
// each of a few cache lines, a call of memcpy for each takes a fourth of the time.
inline void CopyRow(const float* from, size_t width, float* to) {
  constexpr size_t kFloatsPerLine = 16;
  size_t i = 0;
  // A size that the compiler knows becomes a few vector moves.
  for (; i + kFloatsPerLine <= width; i += kFloatsPerLine) {
    std::memcpy(to + i, from + i, kFloatsPerLine * sizeof(float));
  }
  for (; i < width; ++i) to[i] = from[i];
}

}  // namespace covey
