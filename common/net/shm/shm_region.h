// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/descriptor.h"
#include "common/net/shm/shm_layout.h"

namespace covey {

// A region that this process owns and writes. A peer that is given the descriptor can map the
// region, but cannot write it, and neither side can change its size. A child of fork() does not
// inherit the mapping.
//
// Thread-safety: the bytes are shared memory; see ShmState.
class ShmRegion {
 public:
  // UNAVAILABLE: this system gives no such memory; says which call failed, and why.
  static absl::StatusOr<ShmRegion> Create();
  ~ShmRegion();
  ShmRegion(ShmRegion&& other) noexcept;
  ShmRegion& operator=(ShmRegion&&) = delete;

  // To be sent to the peer.
  const Descriptor& descriptor() const { return descriptor_; }
  // Once it has been sent; the mapping stays.
  void CloseDescriptor() { descriptor_.Close(); }
  ShmState& state() const { return *reinterpret_cast<ShmState*>(start_); }
  std::span<uint8_t> ring() const { return {start_ + kShmRingOffset, kShmRingBytes}; }
  std::span<uint8_t> frames() const { return {start_ + kShmFramesOffset, kShmFrameSpaceBytes}; }

 private:
  ShmRegion(uint8_t* start, Descriptor descriptor);

  uint8_t* start_ = nullptr;
  Descriptor descriptor_;
};

// A peer's region, mapped read-only.
//
// The peer may change the bytes at any time, so read each field once. It cannot cut them off.
class PeerShmRegion {
 public:
  // INVALID_ARGUMENT: the descriptor is not that of a ShmRegion: wrong size, or its size could be
  // changed. UNAVAILABLE: it cannot be mapped.
  static absl::StatusOr<PeerShmRegion> Map(Descriptor descriptor);
  ~PeerShmRegion();
  PeerShmRegion(PeerShmRegion&& other) noexcept;
  PeerShmRegion& operator=(PeerShmRegion&&) = delete;

  const ShmState& state() const { return *reinterpret_cast<const ShmState*>(start_); }
  std::span<const uint8_t> ring() const { return {start_ + kShmRingOffset, kShmRingBytes}; }
  std::span<const uint8_t> frames() const {
    return {start_ + kShmFramesOffset, kShmFrameSpaceBytes};
  }

 private:
  explicit PeerShmRegion(const uint8_t* start) : start_(start) {}

  const uint8_t* start_ = nullptr;
};

}  // namespace covey
