// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/descriptor.h"
#include "common/net/message.h"
#include "common/net/shm/frame_space.h"
#include "common/net/shm/shm_region.h"
#include "common/net/shm/shm_ring.h"
#include "common/net/wire.h"

namespace covey {

// Messages to and from one peer through the two regions (shm_layout.h). A large frame is copied
// once, into this process's region; the peer uses it there (Buffer::Lend), and this process does
// not write there again before the peer has released it. So a sent message's frames are released
// at once.
//
//   record   head bytes u32, frames u32, then per frame:
//              offset in the region's frames u64, or kInline; bytes u64;
//              use: slot u32, generation u32
//            the head (wire.h), then the bytes of inline frames; each padded to 8 bytes
//
// Actor-confined, except that received frames may be dropped on any thread, also after the link.
// The peer is a process of the same user that may break the rules: whatever it writes, nothing is
// read outside its region, and nothing is allocated beyond `limits`. It can change the bytes of a
// frame at any time; a change after the checksum was verified is not noticed.
class ShmLink {
 public:
  // `wake_up`: the peer's eventfd; does not block.
  ShmLink(ShmRegion own, PeerShmRegion peer, Descriptor wake_up, const WireLimits& limits);

  // False: there is no room now. The peer then wakes this loop once there may be.
  // Precondition: PrepareHead has returned `head_bytes` for the message. DATA_LOSS: the peer has
  // broken the rules; close the link.
  absl::StatusOr<bool> Send(const Message& message, size_t head_bytes);

  bool HasInput() const { return reader_.HasInput(); }
  // False: nothing has arrived. INVALID_ARGUMENT: this was not a message. DATA_LOSS: as Send.
  absl::StatusOr<bool> Receive(Message& message);

  // Between the two the peer wakes this loop when it sends a message. False: one is there already.
  bool FallAsleep();
  void Awake();

 private:
  // What received frames need, and so what outlives the link.
  struct Memory {
    ShmRegion own;
    PeerShmRegion peer;
    Descriptor wake_up;
    std::atomic<uint32_t> told_of_room{0};

    // The peer's loop, if it waits for room.
    void NotifyOfRoom();
    void WakePeer() const;
  };

  absl::StatusOr<bool> TrySend(const Message& message, size_t head_bytes);
  // Copies the large frames into the region; false when there is no room for all of them.
  bool PlaceFrames(const Message& message);
  absl::Status ReadFrames(std::span<const uint8_t> entries, std::span<const uint8_t> bytes,
                          Message& message);
  Buffer FrameOfPeer(std::span<const uint8_t> bytes, const FrameSpace::Use& use) const;

  const WireLimits limits_;
  const std::shared_ptr<Memory> memory_;
  ShmRingWriter writer_;
  ShmRingReader reader_;
  FrameSpace frames_;
  bool asleep_ = false;
  uint32_t sleep_ = 0;                     // as ShmState
  uint32_t woken_from_ = 0;                // the peer's sleep from which it was woken last
  std::vector<FrameSpace::Range> placed_;  // the large frames of the message that is being sent
  std::vector<uint8_t> record_;            // that is being received
};

}  // namespace covey
