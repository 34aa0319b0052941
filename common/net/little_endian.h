// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace covey {

// The integers of wire.h, in sizeof(T) bytes that need no alignment. Pure.

template <std::unsigned_integral T>
void StoreLittle(T value, uint8_t* to) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<uint8_t>(value >> (8 * i));
}

template <std::unsigned_integral T>
T LoadLittle(const uint8_t* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(from[i]) << (8 * i);
  return value;
}

}  // namespace covey
