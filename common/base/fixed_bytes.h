// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace covey {

// Numbers at fixed places in the headers of files, little endian. Pure. Precondition: the bytes
// have room for the number.
template <typename T>
void WriteFixed(T value, size_t at, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

template <typename T>
T ReadFixed(std::span<const uint8_t> bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(bytes[at + i]) << (8 * i));
  }
  return value;
}

}  // namespace covey
