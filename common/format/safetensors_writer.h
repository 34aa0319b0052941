// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "common/format/safetensors_tensor.h"

namespace covey {

// The head of a safetensors file (https://github.com/huggingface/safetensors, "Format"): the length
// of the JSON text as 8 bytes, little endian; the JSON text, which says name, type, shape and place
// of each tensor, padded with spaces to a multiple of 8. Row-major data follow, little endian, in
// the order of the tensors and without gaps.

// Preconditions (checked): names differ, also those of notes; no tensor is named "__metadata__";
// each has a whole number of bytes, and the sum is below 2^64. Text that is not UTF-8 gets U+FFFD
// in place of wrong bytes.
std::string SafetensorsHead(std::span<const SafetensorsTensor> tensors,
                            const SafetensorsNotes& notes);

}  // namespace covey
