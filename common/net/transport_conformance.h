// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/net/own_process.h"
#include "common/net/transport.h"

namespace covey {

// The suite that every Transport passes. An implementation provides a network and writes
//
//   INSTANTIATE_TEST_SUITE_P(Loopback, TransportConformance,
//                            testing::Values([] { return std::make_unique<LoopbackNetwork>(); }));
//
// A network connects transports that know each other's endpoints; test-only.
class ConformanceNetwork {
 public:
  virtual ~ConformanceNetwork() = default;
  struct Options {
    Address self;  // whose loop it is
    bool listens = true;
    int queue_messages = 1024;
  };
  // Endpoints of different transports differ, even after one of them was destroyed.
  virtual std::unique_ptr<Transport> Make(const Options& options) = 0;
  // An endpoint at which no transport listens.
  virtual std::string DeadEndpoint() = 0;
  // A time after which nothing more will happen; may be virtual time.
  virtual absl::Duration Patience() const { return absl::Seconds(20); }
  virtual absl::Time Now() const { return MonotonicNow(); }
};

using MakeConformanceNetwork = std::function<std::unique_ptr<ConformanceNetwork>()>;

class TransportConformance : public testing::TestWithParam<MakeConformanceNetwork> {
 protected:
  static constexpr Address kAlice = {NodeId(11), 0};
  static constexpr Address kBob = {NodeId(12), 3};

  static constexpr Address kCarol = {NodeId(13), 0};

  std::unique_ptr<Transport> Make(const Address& self) { return network_->Make({.self = self}); }

  // `request_id` tells messages apart.
  static Message Numbered(const Address& from, const Address& to, uint64_t request_id) {
    Message message;
    message.set_to(to);
    message.envelope.mutable_header()->set_node(from.node.value());
    message.envelope.set_from_loop(from.loop);
    message.envelope.mutable_header()->set_request_id(request_id);
    return message;
  }

  static Message ReplyOf(const Address& from, const Message& request) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_header()->set_node(from.node.value());
    reply.envelope.set_from_loop(from.loop);
    return reply;
  }

  static Buffer Pattern(size_t size, uint8_t seed) {
    Buffer buffer = Buffer::Allocate(size);
    uint8_t* bytes = buffer.MutableData();
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
    return buffer;
  }

  // Lets `transports` receive until `done`, at most for the network's patience. Waiting transports
  // take turns with those that send.
  bool Until(const std::vector<Transport*>& transports, const std::function<bool()>& done,
             const std::function<void(Transport&, Message)>& sink) {
    const absl::Time deadline = network_->Now() + network_->Patience();
    while (!done()) {
      if (network_->Now() > deadline) return false;
      for (Transport* transport : transports) {
        transport->Receive(16, [&](Message message) { sink(*transport, std::move(message)); });
        if (!done()) transport->Wait(absl::Milliseconds(2));
      }
    }
    return true;
  }

  // The messages that arrive at `transport` while `senders` go on with theirs.
  std::vector<Message> ReceiveFrom(Transport& transport, size_t count,
                                   std::vector<Transport*> senders) {
    std::vector<Message> messages;
    senders.push_back(&transport);
    EXPECT_TRUE(Until(
        senders, [&] { return messages.size() >= count; },
        [&](Transport&, Message message) { messages.push_back(std::move(message)); }))
        << "received " << messages.size() << " of " << count;
    return messages;
  }

  std::unique_ptr<ConformanceNetwork> network_ = GetParam()();
};

TEST_P(TransportConformance, DeliversTheEnvelope) {
  const auto alice = Make(kAlice);
  const auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  Message message = Numbered(kAlice, kBob, 77);
  message.envelope.mutable_push_request()->mutable_id()->set_sequence(5);
  alice->Send(std::move(message));
  const auto received = ReceiveFrom(*bob, 1, {alice.get()});
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].from(), kAlice);
  EXPECT_EQ(received[0].to(), kBob);
  EXPECT_EQ(received[0].envelope.header().request_id(), 77u);
  EXPECT_EQ(received[0].envelope.push_request().id().sequence(), 5u);
  EXPECT_EQ(alice->counters().sent, 1u);
  EXPECT_EQ(bob->counters().received, 1u);
}

TEST_P(TransportConformance, KeepsTheOrderOfAPair) {
  constexpr uint64_t kMessages = 400;
  const auto alice = Make(kAlice);
  const auto carol = Make(kCarol);
  const auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  carol->SetRoute(kBob, bob->endpoint());
  for (uint64_t i = 1; i <= kMessages; ++i) {
    Message with_frame = Numbered(kAlice, kBob, i);
    if (i % 3 == 0) with_frame.frames.push_back(Pattern(i * 40, 0));
    alice->Send(std::move(with_frame));
    carol->Send(Numbered(kCarol, kBob, i));
  }
  uint64_t last_of_alice = 0;
  uint64_t last_of_carol = 0;
  for (const Message& message : ReceiveFrom(*bob, 2 * kMessages, {alice.get(), carol.get()})) {
    uint64_t& last = message.from() == kAlice ? last_of_alice : last_of_carol;
    EXPECT_EQ(message.envelope.header().request_id(), last + 1);
    last = message.envelope.header().request_id();
  }
}

TEST_P(TransportConformance, DeliversFramesIntactAndAligned) {
  const auto alice = Make(kAlice);
  const auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  const std::vector<size_t> sizes = {0,    1,    33,   255,   256,    1023,    1025,
                                     8191, 8192, 8193, 65536, 262144, 1 << 20, 3 << 20};
  for (size_t i = 0; i < sizes.size(); ++i) {
    Message message = Numbered(kAlice, kBob, i);
    message.frames.push_back(Pattern(sizes[i], static_cast<uint8_t>(i)));
    message.frames.push_back(Pattern(i, 1));
    message.frames.push_back(Pattern(sizes[sizes.size() - 1 - i], 2));
    alice->Send(std::move(message));
  }
  const auto received = ReceiveFrom(*bob, sizes.size(), {alice.get()});
  ASSERT_EQ(received.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<Buffer> expected = {Pattern(sizes[i], static_cast<uint8_t>(i)), Pattern(i, 1),
                                          Pattern(sizes[sizes.size() - 1 - i], 2)};
    ASSERT_EQ(received[i].frames.size(), expected.size());
    for (size_t f = 0; f < expected.size(); ++f) {
      const Buffer& frame = received[i].frames[f];
      EXPECT_TRUE(std::equal(frame.bytes().begin(), frame.bytes().end(),
                             expected[f].bytes().begin(), expected[f].bytes().end()))
          << "message " << i << ", frame " << f;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.data()) % 8, 0u);
    }
  }
}

TEST_P(TransportConformance, ReleasesFramesOnceDelivered) {
  const auto alice = Make(kAlice);
  const auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  const std::vector<uint8_t> memory(1 << 20, 42);
  std::atomic<int> released = 0;
  for (int i = 0; i < 3; ++i) {
    Message message = Numbered(kAlice, kBob, 1);
    message.frames.push_back(
        Buffer::Wrap(memory.data(), memory.size(), [&released] { ++released; }));
    alice->Send(std::move(message));
  }
  int received = 0;
  EXPECT_TRUE(Until(
      {alice.get(), bob.get()}, [&] { return received == 3 && released == 3; },
      [&](Transport&, const Message&) { ++received; }));
}

TEST_P(TransportConformance, ReceivedFramesOutliveTheTransport) {
  auto alice = Make(kAlice);
  auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  Message message = Numbered(kAlice, kBob, 1);
  message.frames.push_back(Pattern(100000, 9));
  alice->Send(std::move(message));
  const auto received = ReceiveFrom(*bob, 1, {alice.get()});
  ASSERT_EQ(received.size(), 1u);
  alice.reset();
  bob.reset();
  const Buffer expected = Pattern(100000, 9);
  EXPECT_TRUE(std::equal(expected.bytes().begin(), expected.bytes().end(),
                         received[0].frames[0].bytes().begin()));
}

TEST_P(TransportConformance, RepliesToAPeerThatListensNowhere) {
  const auto client = network_->Make({.self = kAlice, .listens = false});
  const auto other = network_->Make({.self = kCarol, .listens = false});
  const auto bob = Make(kBob);
  EXPECT_EQ(client->endpoint(), "");
  client->SetRoute(kBob, bob->endpoint());
  other->SetRoute(kBob, bob->endpoint());
  other->Send(Numbered(kCarol, kBob, 1));
  client->Send(Numbered(kAlice, kBob, 2));
  std::vector<Message> replies;
  EXPECT_TRUE(Until(
      {client.get(), other.get(), bob.get()}, [&] { return replies.size() == 2; },
      [&](Transport& at, Message message) {
        EXPECT_FALSE(IsFromOwnProcess(message));
        if (&at == bob.get()) {
          Message reply = ReplyOf(kBob, message);
          reply.frames.push_back(Pattern(5000, 3));
          bob->Send(std::move(reply));
        } else {
          EXPECT_EQ(message.envelope.header().request_id(), &at == client.get() ? 2u : 1u);
          replies.push_back(std::move(message));
        }
      }));
}

TEST_P(TransportConformance, DropsWhatHasNoRoute) {
  const auto alice = Make(kAlice);
  std::atomic<int> released = 0;
  const uint8_t byte = 0;
  Message message = Numbered(kAlice, kBob, 1);
  message.frames.push_back(Buffer::Wrap(&byte, 1, [&released] { ++released; }));
  alice->Send(std::move(message));
  EXPECT_EQ(alice->counters().dropped, 1u);
  EXPECT_EQ(alice->counters().sent, 0u);
  EXPECT_EQ(released, 1);
}

TEST_P(TransportConformance, DropsRepliesToAConnectionThatIsGone) {
  auto client = network_->Make({.self = kAlice, .listens = false});
  const auto bob = Make(kBob);
  client->SetRoute(kBob, bob->endpoint());
  client->Send(Numbered(kAlice, kBob, 1));
  const auto received = ReceiveFrom(*bob, 1, {client.get()});
  ASSERT_EQ(received.size(), 1u);
  client.reset();
  EXPECT_TRUE(Until(
      {bob.get()},
      [&] {
        bob->Send(ReplyOf(kBob, received[0]));
        return bob->counters().dropped > 0;
      },
      [](Transport&, const Message&) {}));
}

TEST_P(TransportConformance, DropsInsteadOfBlockingWhenTheQueueIsFull) {
  const auto alice = network_->Make({.self = kAlice, .queue_messages = 8});
  const auto bob = network_->Make({.self = kBob, .queue_messages = 8});
  alice->SetRoute(kBob, bob->endpoint());
  const Buffer frame = Pattern(1 << 20, 0);
  constexpr uint64_t kMessages = 1000;  // 1 GB, more than any socket takes
  for (uint64_t i = 0; i < kMessages; ++i) {
    Message message = Numbered(kAlice, kBob, i);
    message.frames.push_back(frame);
    alice->Send(std::move(message));
  }
  EXPECT_GT(alice->counters().dropped, 0u);
  EXPECT_EQ(alice->counters().dropped + alice->counters().sent, kMessages);
  // Messages that were accepted arrive, in order.
  uint64_t expected = 0;
  for (const Message& message : ReceiveFrom(*bob, alice->counters().sent, {alice.get()})) {
    EXPECT_GE(message.envelope.header().request_id(), expected);
    expected = message.envelope.header().request_id() + 1;
  }
}

TEST_P(TransportConformance, FollowsAPeerToItsNewEndpoint) {
  const auto alice = Make(kAlice);
  auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  alice->Send(Numbered(kAlice, kBob, 1));
  EXPECT_EQ(ReceiveFrom(*bob, 1, {alice.get()}).size(), 1u);
  bob.reset();
  const auto reborn = Make(kBob);
  alice->SetRoute(kBob, reborn->endpoint());
  alice->SetRoute(kBob, reborn->endpoint());
  alice->Send(Numbered(kAlice, kBob, 2));
  const auto received = ReceiveFrom(*reborn, 1, {alice.get()});
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].envelope.header().request_id(), 2u);
}

TEST_P(TransportConformance, DroppingARouteReleasesItsFrames) {
  const auto alice = Make(kAlice);
  const auto bob = Make(kBob);
  const std::vector<uint8_t> memory(1 << 20, 1);
  for (const std::string& endpoint : {network_->DeadEndpoint(), bob->endpoint()}) {
    alice->SetRoute(kBob, endpoint);
    constexpr int kMessages = 64;
    std::atomic<int> released = 0;
    for (int i = 0; i < kMessages; ++i) {
      Message message = Numbered(kAlice, kBob, 1);
      message.frames.push_back(
          Buffer::Wrap(memory.data(), memory.size(), [&released] { ++released; }));
      alice->Send(std::move(message));
    }
    alice->DropRoute(kBob);
    EXPECT_TRUE(Until(
        {alice.get()}, [&] { return released == kMessages; }, [](Transport&, const Message&) {}));
    alice->Send(Numbered(kAlice, kBob, 2));
    EXPECT_GT(alice->counters().dropped, 0u);
  }
}

TEST_P(TransportConformance, TakesAtMostTheLimitAndSaysWhetherThereMayBeMore) {
  const auto alice = Make(kAlice);
  const auto bob = Make(kBob);
  alice->SetRoute(kBob, bob->endpoint());
  for (uint64_t i = 0; i < 10; ++i) alice->Send(Numbered(kAlice, kBob, i));
  size_t received = 0;
  const absl::Time deadline = network_->Now() + network_->Patience();
  while (received < 10 && network_->Now() < deadline) {
    size_t batch = 0;
    alice->Receive(3, [](const Message&) {});
    alice->Wait(absl::ZeroDuration());
    const bool more = bob->Receive(3, [&](const Message&) { ++batch; });
    EXPECT_LE(batch, 3u);
    received += batch;
    if (!more) bob->Wait(absl::Milliseconds(10));
  }
  EXPECT_EQ(received, 10u);
}

TEST_P(TransportConformance, AWakeUpEndsTheNextWait) {
  const auto alice = Make(kAlice);
  const absl::Time start = network_->Now();
  alice->WakeUp();
  alice->Wait(network_->Patience());
  EXPECT_LT(network_->Now() - start, network_->Patience());
}

}  // namespace covey
