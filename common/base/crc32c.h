#pragma once

#include <cstdint>
#include <span>

namespace covey {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4). Pure. By ISA-L, which picks the fastest instructions
// of the CPU at run time: 18 to 50 GB/s per core on the reference machine, from 4 KiB on
// (crc32c_bench.cc).
uint32_t Crc32c(std::span<const uint8_t> bytes);

}  // namespace covey
