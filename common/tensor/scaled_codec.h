// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey {

// One block of kFloat16Block or kFloat8Block: a float, the scale, and each element over the scale,
// as a half (half_codec.h) or as a byte of sign, four bits of exponent with a bias of 7 and three
// of fraction (E4M3 of the OCP 8-bit floating point specification). Used by codec.cc for each
// block.
//
// Pure and thread-safe; any alignment. The scale is a power of two, so that dividing by it rounds
// nothing, and at least 2^-126. Where it is larger than that, the largest magnitude becomes, as it
// is rounded, 2^14 or more and less than 2^15 as a half, 2^7 or more and less than 2^8 as a byte:
// nothing overflows. The scale is NaN, and with it the whole decoded block, if an element is not
// finite; it is 0 if all elements are. Rounds once, to nearest even.

// Precondition of both: `bytes` has 4 + 2 * values.size() bytes, and values.size() is at most
// kBlockElements.
void EncodeScaledHalfBlock(std::span<const float> values, std::span<uint8_t> bytes);
// Accepts any bytes.
void DecodeScaledHalfBlock(std::span<const uint8_t> bytes, std::span<float> values);

// Precondition of both: `bytes` has 4 + values.size() bytes.
void EncodeFloat8Block(std::span<const float> values, std::span<uint8_t> bytes);
// Accepts any bytes.
void DecodeFloat8Block(std::span<const uint8_t> bytes, std::span<float> values);

}  // namespace covey
