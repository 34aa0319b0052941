// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace covey {

// The bits of an IEEE 754 single, for codecs that round by integer arithmetic. Pure.

inline constexpr uint32_t kFloatSign = 0x80000000;
inline constexpr uint32_t kFloatInfinity = 0x7f800000;

inline uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
inline float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }

}  // namespace covey
