// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_link.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

Descriptor Copy(const Descriptor& descriptor) {
  return Descriptor(fcntl(descriptor.number(), F_DUPFD_CLOEXEC, 0));
}

// One side: its link, its memory, and the eventfd that wakes it.
struct Side {
  Descriptor wake_up{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::unique_ptr<ShmLink> link;
  uint8_t* memory = nullptr;  // writable, as only its owner has it

  bool Woken() const {
    eventfd_t times = 0;
    return eventfd_read(wake_up.number(), &times) == 0;
  }
};

struct Pair {
  Pair() {
    ShmRegion regions[2] = {*ShmRegion::Create(), *ShmRegion::Create()};
    for (int i = 0; i < 2; ++i) {
      PeerShmRegion peer = *PeerShmRegion::Map(Copy(regions[1 - i].descriptor()));
      peers.push_back(std::move(peer));
      sides[i].memory = reinterpret_cast<uint8_t*>(&regions[i].state());
    }
    for (int i = 0; i < 2; ++i) {
      sides[i].link = std::make_unique<ShmLink>(std::move(regions[i]), std::move(peers[i]),
                                                Copy(sides[1 - i].wake_up.number()), WireLimits());
    }
  }
  static Descriptor Copy(const Descriptor& descriptor) { return covey::Copy(descriptor); }
  static Descriptor Copy(int number) { return Descriptor(fcntl(number, F_DUPFD_CLOEXEC, 0)); }

  Side& a() { return sides[0]; }
  Side& b() { return sides[1]; }

  std::vector<PeerShmRegion> peers;
  Side sides[2];
};

bool Send(Side& side, Message message) {
  const auto head_bytes = PrepareHead(WireLimits(), message);
  EXPECT_TRUE(head_bytes.ok());
  const auto sent = side.link->Send(message, *head_bytes);
  EXPECT_TRUE(sent.ok()) << sent.status();
  return sent.ok() && *sent;
}

Message WithFrames(std::vector<size_t> sizes, uint8_t seed = 0) {
  Message message;
  message.envelope.mutable_header()->set_request_id(seed);
  for (const size_t size : sizes) {
    Buffer frame = Buffer::Allocate(size);
    std::fill_n(frame.MutableData(), size, static_cast<uint8_t>(seed + size));
    message.frames.push_back(std::move(frame));
  }
  return message;
}

TEST(ShmLinkTest, FramesOfAllSizesArriveAndMessagesHoldNothing) {
  Pair pair;
  const std::vector<size_t> sizes = {0, 1, kShmInlineFrameBytesMax, kShmInlineFrameBytesMax + 1};
  for (uint8_t seed = 0; seed < 100; ++seed) {
    Message sent = WithFrames(sizes, seed);
    ASSERT_TRUE(Send(pair.a(), sent));
    for (const Buffer& frame : sent.frames) {
      EXPECT_TRUE(frame.empty() || frame.IsUnique()) << "released when it is sent";
    }
    Message received;
    ASSERT_TRUE(*pair.b().link->Receive(received));
    EXPECT_EQ(received.envelope.header().request_id(), seed);
    ASSERT_EQ(received.frames.size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_EQ(received.frames[i].size(), sizes[i]);
      EXPECT_TRUE(std::equal(sent.frames[i].bytes().begin(), sent.frames[i].bytes().end(),
                             received.frames[i].bytes().begin()));
    }
  }
  Message nothing;
  EXPECT_FALSE(*pair.b().link->Receive(nothing));
}

TEST(ShmLinkTest, TheLargestMessageFitsAgainAndAgain) {
  Pair pair;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Send(pair.a(), WithFrames(std::vector<size_t>(kFramesMax, kFrameBytesMax))));
    EXPECT_FALSE(Send(pair.a(), WithFrames({kFrameBytesMax})));
    Message received;
    ASSERT_TRUE(*pair.b().link->Receive(received));
  }
}

TEST(ShmLinkTest, AFrameThatThePeerHoldsIsNotWrittenOver) {
  Pair pair;
  ASSERT_TRUE(Send(pair.a(), WithFrames({1 << 20}, 1)));
  Message held;
  ASSERT_TRUE(*pair.b().link->Receive(held));
  for (uint8_t seed = 2; seed < 200; ++seed) {
    ASSERT_TRUE(Send(pair.a(), WithFrames({1 << 20}, seed)));
    Message other;
    ASSERT_TRUE(*pair.b().link->Receive(other));
    EXPECT_EQ(other.frames[0].bytes()[0], seed);
  }
  const auto bytes = held.frames[0].bytes();
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 1; }));
}

TEST(ShmLinkTest, AFrameMayOutliveTheLinks) {
  auto pair = std::make_unique<Pair>();
  ASSERT_TRUE(Send(pair->a(), WithFrames({100'000}, 3)));
  Message held;
  ASSERT_TRUE(*pair->b().link->Receive(held));
  pair.reset();
  EXPECT_EQ(held.frames[0].bytes()[99'999], static_cast<uint8_t>(3 + 100'000));
}

TEST(ShmLinkTest, ASleepingPeerIsWokenOnce) {
  Pair pair;
  Message message;
  ASSERT_TRUE(Send(pair.a(), WithFrames({})));
  EXPECT_FALSE(pair.b().Woken()) << "it does not sleep";
  EXPECT_FALSE(pair.b().link->FallAsleep()) << "a message is there";
  pair.b().link->Awake();
  ASSERT_TRUE(*pair.b().link->Receive(message));
  for (int sleep = 0; sleep < 3; ++sleep) {
    EXPECT_TRUE(pair.b().link->FallAsleep());
    ASSERT_TRUE(Send(pair.a(), WithFrames({})));
    EXPECT_TRUE(pair.b().Woken());
    ASSERT_TRUE(Send(pair.a(), WithFrames({})));
    EXPECT_FALSE(pair.b().Woken()) << "it is awake already, or soon";
    pair.b().link->Awake();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(*pair.b().link->Receive(message));
  }
}

TEST(ShmLinkTest, ASenderWithoutRoomIsWokenWhenThereIsSome) {
  Pair pair;
  const std::vector<size_t> half = {kFrameBytesMax, kFrameBytesMax};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Send(pair.a(), WithFrames(half)));
  ASSERT_FALSE(Send(pair.a(), WithFrames(half)));
  {
    Message received;
    ASSERT_TRUE(*pair.b().link->Receive(received));
    // The ring has room now, but the frames are in use.
    EXPECT_TRUE(pair.a().Woken());
    EXPECT_FALSE(Send(pair.a(), WithFrames(half)));
    EXPECT_FALSE(pair.a().Woken());
  }
  EXPECT_TRUE(pair.a().Woken()) << "the frames are free";
  EXPECT_TRUE(Send(pair.a(), WithFrames(half)));
}

// The peer breaks the rules: it changes the bytes of its records.
TEST(ShmLinkTest, NoBytesOfThePeerLeadOutsideItsMemory) {
  Random random(4);
  uint64_t data_loss = 0;
  uint64_t invalid = 0;
  for (int round = 0; round < 300; ++round) {
    Pair pair;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Send(pair.a(), WithFrames({100, 20'000})));
    for (int i = 0; i < 3; ++i) {
      uint8_t* const word = pair.a().memory + kShmRingOffset + 4 * random.Below(80);
      const uint32_t values[] = {0, 1, 8, 0xffffffff, static_cast<uint32_t>(random.Next())};
      std::memcpy(word, &values[random.Below(std::size(values))], sizeof(uint32_t));
    }
    for (int i = 0; i < 4; ++i) {
      Message message;
      const auto received = pair.b().link->Receive(message);
      for (const Buffer& frame : message.frames) {
        // All of it can be read.
        EXPECT_GE(std::count(frame.bytes().begin(), frame.bytes().end(), 1), 0);
      }
      if (absl::IsDataLoss(received.status())) ++data_loss;
      if (absl::IsInvalidArgument(received.status())) ++invalid;
      if (absl::IsDataLoss(received.status())) break;
    }
  }
  EXPECT_GT(data_loss, 20u);
  EXPECT_GT(invalid, 20u);
}

}  // namespace
}  // namespace covey
