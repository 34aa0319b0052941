// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey {

// One block of kInt8Block: a float, the scale, and a signed byte for each element, which is a
// multiple of the scale. Used by codec.cc for each block.
//
// Pure and thread-safe; any alignment. The scale is the largest magnitude over 127. It is NaN, and
// so the whole block when decoded, if an element is not finite.

// Precondition of both: `bytes` has 4 + values.size() bytes.
void EncodeInt8Block(std::span<const float> values, std::span<uint8_t> bytes);
// Accepts any bytes.
void DecodeInt8Block(std::span<const uint8_t> bytes, std::span<float> values);

}  // namespace covey
