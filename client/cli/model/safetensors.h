// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/tensor/wire_format.h"

namespace covey::cli {

// The head of a safetensors file (https://github.com/huggingface/safetensors, "Format"): the length
// of the JSON text as 8 bytes, little endian; the JSON text, which says name, type, shape and place
// of each tensor, padded with spaces to a multiple of 8. Row-major data follow, little endian, in
// the order of the entries and without gaps.

struct SafetensorsEntry {
  std::string name;
  // Slowest extent first; empty for a scalar.
  std::vector<uint64_t> shape;

  uint64_t elements() const;
};

// Whether the format has a type for these elements: float32, float16 and bfloat16.
bool SafetensorsHas(WireFormat format);

// All tensors are of one type. `notes`: text for readers of the file, by name. Precondition
// (checked): SafetensorsHas(format); the names differ, and none is "__metadata__".
std::string SafetensorsHead(WireFormat format, std::span<const SafetensorsEntry> entries,
                            std::span<const std::pair<std::string, std::string>> notes);

}  // namespace covey::cli
