// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4). Pure. By ISA-L, which picks the fastest instructions
// of the CPU at run time: 18 to 50 GB/s per core on the reference machine, from 4 KiB on
// (crc32c_bench.cc).
uint32_t Crc32c(std::span<const uint8_t> bytes);
// The checksum of bytes whose first part has the checksum `before`, and whose rest are `bytes`.
uint32_t ExtendCrc32c(uint32_t before, std::span<const uint8_t> bytes);

// Copies the bytes to `to`, and returns their checksum; reads memory once. The ranges do not
// overlap. Past the caches, the destination is not read before it is written, and does not displace
// what the caches hold: faster where all that is copied is larger than the caches, and slower where
// it is read soon. On processors without such stores the copy goes through the caches.
enum class CopyWay : uint8_t { kThroughCaches, kPastCaches };
uint32_t CopyWithCrc32c(std::span<const uint8_t> bytes, uint8_t* to,
                        CopyWay way = CopyWay::kThroughCaches);

// The checksum of bytes that consist of two parts whose checksums are `first` and `second`; the
// second part has `second_bytes` bytes. Reads no byte. About 1 microsecond.
uint32_t JoinCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace covey
