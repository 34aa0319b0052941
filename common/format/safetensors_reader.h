// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/safetensors_tensor.h"

namespace covey {

// The head of a safetensors file, which a stranger may have written: safetensors_writer.h draws the
// format. More is refused than by the reference implementation: names that occur twice, names with
// control characters, fields that the format does not have, and whatever is beyond the limits. So
// nothing nests deeper than a shape does.
//
// A name is text of the file. It may look like a path ("../x"): never open a file by it.
//
// Use: read kSafetensorsPrefixBytes, ask SafetensorsHeadBytes, read that many bytes from the
// file's beginning, call ReadSafetensorsHead. Read the file, do not map it: it may change.
//
// Pure. Needs memory for the head's names and texts, at most about five times the head.

// The file's first bytes, which hold the length of the JSON text.
inline constexpr size_t kSafetensorsPrefixBytes = 8;

// Limits. A file beyond them is refused.
struct SafetensorsLimits {
  // Bytes of the JSON text; as in the reference implementation.
  static constexpr uint64_t kTextBytes = 100'000'000;
  // Tensors, and as many notes. Bounds the memory that a small text needs.
  static constexpr size_t kTensors = size_t{1} << 20;
  static constexpr size_t kExtents = 8;
  // Sizes and places in the file; larger ones do not fit the system's offsets.
  static constexpr uint64_t kNumber = (uint64_t{1} << 63) - 1;
};

struct PlacedTensor {
  SafetensorsTensor tensor;
  // Its bytes, counted from the beginning of the file.
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsContent {
  // In the order of their data, without gaps from the end of the head to the end of the file.
  std::vector<PlacedTensor> tensors;
  // By name.
  SafetensorsNotes notes;
};

// The size of the head, prefix included. `prefix`: the first kSafetensorsPrefixBytes of the file,
// or the whole file where it is shorter. INVALID_ARGUMENT: too short a file, or too long a head.
absl::StatusOr<uint64_t> SafetensorsHeadBytes(std::span<const uint8_t> prefix, uint64_t file_bytes);

// `head`: the first SafetensorsHeadBytes of the file. INVALID_ARGUMENT: the file breaks the format;
// the message names the tensor, or the byte from the file's beginning, and the reason.
absl::StatusOr<SafetensorsContent> ReadSafetensorsHead(std::span<const uint8_t> head,
                                                       uint64_t file_bytes);

}  // namespace covey
