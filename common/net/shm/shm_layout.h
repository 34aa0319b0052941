// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/cluster/limits.h"

namespace covey {

// The memory through which one process talks to one peer on the same host. Each of the two has such
// a region of its own and maps the peer's read-only, so no process writes what another one owns:
//
//   0           kShmRingOffset      kShmFramesOffset             kShmRegionBytes
//   +-----------+-------------------+----------------------------+
//   | ShmState  | ring of records   | frames, at any place       |
//   +-----------+-------------------+----------------------------+
//
// A record (shm_link.h) is a message: its head, small frames, and where its large frames lie. The
// reader tells in its own ShmState how far it has read and which frames it has released.
//
// Nothing has a name in the file system. The region is gone when both processes have unmapped it.

// How many large frames of one direction may be in use at once.
inline constexpr uint32_t kShmFramesInUseMax = 4096;

// What the owner of a region tells its peer. Fields are written by the owner only, and read by
// both; each is on its own cache line if the loop writes it often.
struct ShmState {
  // Bytes of this region's ring that have been filled since the start.
  alignas(64) std::atomic<uint64_t> written;
  // Bytes of the peer's ring that the owner has read since the start.
  alignas(64) std::atomic<uint64_t> read;
  // Odd: the owner's loop is about to sleep, and the peer must wake it after it has written. Each
  // sleep has another number.
  alignas(64) std::atomic<uint32_t> sleep;
  // Odd: the owner has messages that found no room, and the peer must wake it when there is some.
  // Each attempt has another number.
  std::atomic<uint32_t> waits_for_room;
  // By slot: the newest use of the peer's memory that the owner has released (FrameSpace::Use).
  alignas(64) std::atomic<uint32_t> released[kShmFramesInUseMax];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

inline constexpr size_t kShmPageBytes = 4096;
inline constexpr size_t kShmRingOffset =
    (sizeof(ShmState) + kShmPageBytes - 1) / kShmPageBytes * kShmPageBytes;
// Records of the largest envelope fit several times.
inline constexpr size_t kShmRingBytes = 256 << 10;
inline constexpr size_t kShmFramesOffset = kShmRingOffset + kShmRingBytes;
// Of address space; a page uses memory once a frame has lain there. The largest message fits.
inline constexpr size_t kShmFrameSpaceBytes = kFramesMax * kFrameBytesMax;
inline constexpr size_t kShmRegionBytes = kShmFramesOffset + kShmFrameSpaceBytes;

// Of one transport; further peers are left to ZeroMQ. Each takes two descriptors.
inline constexpr size_t kShmConnectionsMax = 1024;

// Frames up to this size travel inside the record.
inline constexpr size_t kShmInlineFrameBytesMax = 8 << 10;

}  // namespace covey
