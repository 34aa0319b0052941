#pragma once

#include <cstdint>
#include <span>

namespace covey {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4). Pure. Hardware instruction where the CPU has it.
uint32_t Crc32c(std::span<const uint8_t> bytes);

}  // namespace covey
