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
//   scaled-float16
//              2 + 4 per 256 elements   2^-11 of the element, or 2^-39 of the largest of its block
//   float8     1 + 4 per 256 elements   2^-4 of the element, or 2^-17 of the largest of its block
//   topk       20 per 256 elements      as float8 for the 8 largest; of the others, all
//
// The last four have blocks of 256 elements that share a scale, so that they hold large elements
// as well as small ones; float8 makes infinity of those beyond 3.2e38. topk keeps the largest
// thirty-second of each block, so it needs error feedback (codec.h). NaN stays NaN and infinity
// stays infinite, except in these: there one element that is not finite makes its whole block NaN,
// so that the error stays visible.
enum class WireFormat : uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kInt8Block = 3,
  kFloat16Block = 4,
  kFloat8Block = 5,
  kTopBlock = 6,
};
inline constexpr WireFormat kWireFormats[] = {WireFormat::kFloat32,      WireFormat::kFloat16,
                                              WireFormat::kBfloat16,     WireFormat::kInt8Block,
                                              WireFormat::kFloat16Block, WireFormat::kFloat8Block,
                                              WireFormat::kTopBlock};

// Elements that share a scale in the formats with blocks. Each encoded span begins a new block.
inline constexpr size_t kBlockElements = 256;

constexpr bool HasBlocks(WireFormat format) { return format >= WireFormat::kInt8Block; }

// "float32", "float16", "bfloat16", "int8", "scaled-float16", "float8", "topk".
const char* WireFormatName(WireFormat format);
// INVALID_ARGUMENT: lists the names.
absl::StatusOr<WireFormat> ParseWireFormat(absl::string_view name);

// Elements that kTopBlock keeps of a block of `count`.
constexpr size_t KeptOfBlock(size_t count) { return (count + 31) / 32; }

// Bytes of `count` elements in blocks, each with its scale, a float.
constexpr size_t BlockBytes(size_t element_bytes, size_t count) {
  return element_bytes * count + 4 * ((count + kBlockElements - 1) / kBlockElements);
}

// Bytes of `count` encoded elements.
constexpr size_t EncodedBytes(WireFormat format, size_t count) {
  switch (format) {
    case WireFormat::kFloat32:
      return 4 * count;
    case WireFormat::kFloat16:
    case WireFormat::kBfloat16:
      return 2 * count;
    case WireFormat::kInt8Block:
    case WireFormat::kFloat8Block:
      return BlockBytes(1, count);
    case WireFormat::kFloat16Block:
      return BlockBytes(2, count);
    case WireFormat::kTopBlock:
      return BlockBytes(0, count) + 2 * (count / kBlockElements * KeptOfBlock(kBlockElements) +
                                         KeptOfBlock(count % kBlockElements));
  }
  return 0;
}

// Bytes of encoded rows of `width` elements each. In formats with blocks each row begins a new one,
// so that a large row does not cost its neighbors their precision.
constexpr size_t EncodedRowBytes(WireFormat format, size_t width, size_t rows) {
  return rows * EncodedBytes(format, width);
}

}  // namespace covey
