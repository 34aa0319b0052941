// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey {

// Floats as bfloat16, the upper half of a float, and back. Used by codec.cc, a chunk at a time.
//
// Pure and thread-safe; any alignment. Rounds once, to nearest even; a NaN becomes quiet.

// Precondition of both: equal sizes.
void EncodeBfloat(std::span<const float> values, std::span<uint16_t> bfloats);
void DecodeBfloat(std::span<const uint16_t> bfloats, std::span<float> values);

}  // namespace covey
