// SPDX-License-Identifier: Apache-2.0
#include "common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace covey {
namespace {

// The library counts in int.
constexpr size_t kBytesAtOnce = size_t{1} << 30;
// Half of a core's first-level cache, and enough for the checksum's full speed.
constexpr size_t kCopiedAtOnce = 16 << 10;

// Polynomials over GF(2) modulo that of CRC-32C, in the bit order of checksums: the highest bit is
// the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = uint32_t{1} << 31;

constexpr uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0); }

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1, b = TimesX(b)) {
    if ((a & kOne) != 0) product ^= b;
  }
  return product;
}

// x^(8 * bytes): the factor by which that many appended zero bytes multiply a checksum, apart from
// its inversions.
constexpr uint32_t Shift(uint64_t bytes) {
  uint32_t result = kOne;
  uint32_t power = kOne >> 8;  // x^8, squared at each step
  for (; bytes != 0; bytes >>= 1, power = Multiply(power, power)) {
    if ((bytes & 1) != 0) result = Multiply(result, power);
  }
  return result;
}

#ifdef __SSE2__
void CopyPastCaches(std::span<const uint8_t> bytes, uint8_t* to) {
  // Such stores are aligned.
  const size_t before = std::min(-reinterpret_cast<uintptr_t>(to) % sizeof(__m128i), bytes.size());
  std::memcpy(to, bytes.data(), before);
  size_t i = before;
  for (; i + sizeof(__m128i) <= bytes.size(); i += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + i)));
  }
  // Other stores may overtake these.
  _mm_sfence();
  std::memcpy(to + i, bytes.data() + i, bytes.size() - i);
}
#else
void CopyPastCaches(std::span<const uint8_t> bytes, uint8_t* to) {
  std::memcpy(to, bytes.data(), bytes.size());
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes) { return ExtendCrc32c(0, bytes); }

uint32_t ExtendCrc32c(uint32_t before, std::span<const uint8_t> bytes) {
  uint32_t crc = ~before;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kBytesAtOnce);
    // ISA-L only reads the bytes, although its parameter is not const.
    crc = crc32_iscsi(const_cast<uint8_t*>(bytes.data()), static_cast<int>(size), crc);
    bytes = bytes.subspan(size);
  }
  return ~crc;
}

uint32_t CopyWithCrc32c(std::span<const uint8_t> bytes, uint8_t* to, CopyWay way) {
  uint32_t checksum = 0;
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), kCopiedAtOnce));
    checksum = ExtendCrc32c(checksum, block);
    if (way == CopyWay::kPastCaches) {
      CopyPastCaches(block, to);
    } else {
      std::memcpy(to, block.data(), block.size());
    }
    to += block.size();
    bytes = bytes.subspan(block.size());
  }
  return checksum;
}

uint32_t JoinCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  if (first == 0) return second;
  return Multiply(first, Shift(second_bytes)) ^ second;
}

}  // namespace covey
