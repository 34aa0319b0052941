// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

// How floats travel; numbers and layouts as in proto/tensor.proto. Arithmetic is always in float.
//
//   name       bytes per element        largest error of a finite element in range
//   float32    4                        0
//   float16    2                        2^-11 of the element; beyond 65504: infinity
//   bfloat16   2                        2^-8 of the element
//   int8       1 + 4 per 256 elements   1/254 of the largest element of its block
//
// NaN stays NaN and infinity stays infinite, except in int8: there one element that is not finite
// makes its whole block NaN, so that the error stays visible.
enum class WireFormat : uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kInt8Block = 3,
};
inline constexpr WireFormat kWireFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                              WireFormat::kBfloat16, WireFormat::kInt8Block};

// Elements that share a scale in kInt8Block. Each encoded span begins a new block.
inline constexpr size_t kInt8BlockElements = 256;

// "float32", "float16", "bfloat16", "int8".
const char* WireFormatName(WireFormat format);
// INVALID_ARGUMENT: lists the names.
absl::StatusOr<WireFormat> ParseWireFormat(absl::string_view name);

// Bytes of `count` encoded elements.
constexpr size_t EncodedBytes(WireFormat format, size_t count) {
  switch (format) {
    case WireFormat::kFloat32:
      return 4 * count;
    case WireFormat::kFloat16:
    case WireFormat::kBfloat16:
      return 2 * count;
    case WireFormat::kInt8Block:
      return count + 4 * ((count + kInt8BlockElements - 1) / kInt8BlockElements);
  }
  return 0;
}

// Bytes of encoded rows of `width` elements each. In kInt8Block each row begins a new block, so
// that a large row does not cost its neighbors their precision.
constexpr size_t EncodedRowBytes(WireFormat format, size_t width, size_t rows) {
  return rows * EncodedBytes(format, width);
}

}  // namespace covey
