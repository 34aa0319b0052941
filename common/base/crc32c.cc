#include "common/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace covey {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41 with its bits reversed

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

uint32_t Portable(uint32_t crc, std::span<const uint8_t> bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  for (uint8_t byte : bytes) crc = kTable[(crc ^ byte) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t Hardware(uint32_t crc, std::span<const uint8_t> bytes) {
  uint64_t wide = crc;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = _mm_crc32_u64(wide, word);
    bytes = bytes.subspan(8);
  }
  uint32_t narrow = static_cast<uint32_t>(wide);
  for (uint8_t byte : bytes) narrow = _mm_crc32_u8(narrow, byte);
  return narrow;
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~Hardware(~0u, bytes);
#endif
  return ~Portable(~0u, bytes);
}

}  // namespace covey
