// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey {

// Floats as halves (IEEE 754 binary16) and back. Used by codec.cc, a chunk at a time.
//
// Pure and thread-safe; any alignment. Rounds once, to nearest even; beyond 65504 lies infinity. A
// NaN keeps its sign and the upper bits of its payload, and becomes quiet. The processor's own
// instructions are used where it has them; they give the same bits.

// Precondition of both: equal sizes.
void EncodeHalf(std::span<const float> values, std::span<uint16_t> halves);
void DecodeHalf(std::span<const uint16_t> halves, std::span<float> values);

}  // namespace covey
