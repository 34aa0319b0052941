// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/tensor/wire_format.h"

namespace covey::gpu {

// The encodings of codec.h, run by the GPU: same preconditions, same bits, except the payload of a
// NaN that is decoded from a format with blocks. Memory, order and failures as in kernels.h; any
// alignment, also of an element of `bytes`.
void Encode(WireFormat format, std::span<const float> values, std::span<uint8_t> bytes);
void Decode(WireFormat format, std::span<const uint8_t> bytes, std::span<float> values);

}  // namespace covey::gpu
