// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/wire_format.h"

namespace covey {

// The head of an NPY file (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html):
//
//   bytes  content
//   6      0x93 "NUMPY"
//   2      version: 1 0, 2 0 or 3 0
//   2      length of the text, little endian; 4 bytes in versions 2 and 3
//   …      the text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, spaces, a newline
//
// The array follows, to the end of the file: row-major, little endian. What NumPy writes for
// float32 and float16 is read and written; there is no bfloat16.
//
// All functions are pure.

struct NpyArray {
  // float32 or float16.
  WireFormat format = WireFormat::kFloat32;
  // Slowest extent first; empty for a scalar.
  std::vector<uint64_t> shape;
  // The place of the first element in the file.
  uint64_t begin = 0;

  friend bool operator==(const NpyArray&, const NpyArray&) = default;
};

// The file's first bytes, which hold the length of the text. Any valid file is longer.
inline constexpr size_t kNpyPrefixBytes = 12;

// Limits. A file beyond them is refused.
struct NpyLimits {
  // Bytes of the text; with so few extents, it needs less than a tenth.
  static constexpr uint64_t kTextBytes = 4096;
  static constexpr size_t kExtents = 8;
  // Sizes; larger ones do not fit the system's offsets.
  static constexpr uint64_t kNumber = (uint64_t{1} << 63) - 1;
};

// The size of the head. `prefix`: the first kNpyPrefixBytes of the file, or the whole file where it
// is shorter. INVALID_ARGUMENT: another kind of file, an unknown version, or too long a head.
absl::StatusOr<uint64_t> NpyHeadBytes(std::span<const uint8_t> prefix, uint64_t file_bytes);

// `head`: the first NpyHeadBytes of the file. Nothing of the text is evaluated. INVALID_ARGUMENT:
// the file breaks the format, or has elements or an order that Covey does not read; the message
// names the byte from the file's beginning, or the key, and the reason.
absl::StatusOr<NpyArray> ReadNpyHead(std::span<const uint8_t> head, uint64_t file_bytes);

// Whether the format has a type for these elements: float32 and float16.
bool NpyHas(WireFormat format);
// Version 1.0; its size, which is a multiple of 64, is where the array begins. Preconditions
// (checked): NpyHas(format); at most NpyLimits::kExtents extents.
std::string NpyHead(WireFormat format, std::span<const uint64_t> shape);
// The same for an array of unsigned 64-bit numbers, '<u8', which is not read back here.
std::string NpyKeysHead(uint64_t count);

}  // namespace covey
