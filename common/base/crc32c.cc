#include "common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace covey {
namespace {

// The library counts in int.
constexpr size_t kBytesAtOnce = size_t{1} << 30;

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0u;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kBytesAtOnce);
    // It only reads, whatever its type says.
    crc = crc32_iscsi(const_cast<uint8_t*>(bytes.data()), static_cast<int>(size), crc);
    bytes = bytes.subspan(size);
  }
  return ~crc;
}

}  // namespace covey
