// SPDX-License-Identifier: Apache-2.0
// What a process on the same host has written into its region: how far it says it has written
// (8 bytes, little endian), then the beginning of its ring.
#include "common/net/shm/shm_link.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr size_t kPositionBytes = sizeof(uint64_t);
// More messages than any input holds.
constexpr int kMessagesMax = 100'000;

Descriptor CopyOf(const Descriptor& descriptor) {
  return Descriptor(fcntl(descriptor.number(), F_DUPFD_CLOEXEC, 0));
}

// A link of this process, and the regions of both.
struct Side {
  ShmState* own_state = nullptr;
  std::span<const uint8_t> own_ring;
  ShmState* peer_state = nullptr;
  std::span<uint8_t> peer_ring;
  // Keeps the mapping of the peer's region, which this process writes in place of the peer.
  ShmRegion peer_region = ShmRegion::Create().value();
  std::unique_ptr<ShmLink> link;

  Side() {
    ShmRegion own = ShmRegion::Create().value();
    own_state = &own.state();
    own_ring = own.ring();
    peer_state = &peer_region.state();
    peer_ring = peer_region.ring();
    link = std::make_unique<ShmLink>(
        std::move(own), PeerShmRegion::Map(CopyOf(peer_region.descriptor())).value(),
        Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), WireLimits());
  }
};

// What `messages` leave in the region of their sender.
std::string SeedOf(std::vector<Message> messages) {
  Side side;
  for (Message& message : messages) {
    const size_t head_bytes = PrepareHead(WireLimits(), message).value();
    COVEY_CHECK(side.link->Send(message, head_bytes).value());
  }
  const uint64_t written = side.own_state->written;
  std::string seed(kPositionBytes, '\0');
  std::memcpy(seed.data(), &written, kPositionBytes);
  return seed + std::string(FuzzText(side.own_ring.first(written)));
}

Message MessageWith(const std::vector<size_t>& frame_bytes) {
  Message message;
  message.envelope.mutable_pull_request();
  message.envelope.mutable_header()->set_request_id(7);
  for (const size_t bytes : frame_bytes) {
    message.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>(bytes, 3)));
  }
  return message;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {SeedOf({MessageWith({})}), SeedOf({MessageWith({0, 5, 100}), MessageWith({1})}),
          SeedOf({MessageWith({kShmInlineFrameBytesMax + 1, 8}), MessageWith({})})};
}

bool FuzzOne(std::span<const uint8_t> input) {
  if (input.size() < kPositionBytes) return false;
  uint64_t written = 0;
  std::memcpy(&written, input.data(), kPositionBytes);
  const std::span<const uint8_t> records =
      input.subspan(kPositionBytes, std::min(input.size() - kPositionBytes, kShmRingBytes));

  Side side;
  std::copy(records.begin(), records.end(), side.peer_ring.begin());
  side.peer_state->written.store(written);
  bool any = false;
  for (int i = 0; i < kMessagesMax; ++i) {
    Message message;
    const auto received = side.link->Receive(message);
    if (absl::IsInvalidArgument(received.status())) continue;  // the next one may be good
    if (!received.ok() || !*received) return any;
    any = true;
    size_t sum = 0;
    for (const Buffer& frame : message.frames) {
      for (const uint8_t byte : frame.bytes()) sum += byte;  // it may be read
    }
    COVEY_CHECK(message.frames.size() <= kFramesMax && sum <= kShmRegionBytes * 255);
  }
  COVEY_CHECK(false);  // the link goes on for ever
  return any;
}

}  // namespace covey
