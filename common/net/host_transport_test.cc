// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_transport.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/net/message.h"
#include "common/net/shm/shm_peers.h"
#include "common/net/testing/unread_replies.h"
#include "common/net/transport_conformance.h"

namespace covey {
namespace {

std::unique_ptr<Transport> MustMake(const HostOptions& options) {
  auto transport = MakeHostTransport(options);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

// Some peers may be without shared memory; then messages go by ZeroMQ.
class HostNetwork : public ConformanceNetwork {
 public:
  enum class Shared { kByAll, kByEveryOther };
  explicit HostNetwork(Shared shared) : shared_(shared) {}

  std::unique_ptr<Transport> Make(const Options& options) override {
    const bool shared = shared_ == Shared::kByAll || ++made_ % 2 == 0;
    return MustMake({.zmq = {.listen = options.listens ? "tcp://127.0.0.1:0" : "",
                             .queue_messages = options.queue_messages},
                     .shared_memory = shared});
  }
  std::string DeadEndpoint() override { return Make({})->endpoint(); }

 private:
  const Shared shared_;
  int made_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Shared, TransportConformance, testing::Values([] {
                           return std::make_unique<HostNetwork>(HostNetwork::Shared::kByAll);
                         }));
INSTANTIATE_TEST_SUITE_P(Mixed, TransportConformance, testing::Values([] {
                           return std::make_unique<HostNetwork>(HostNetwork::Shared::kByEveryOther);
                         }));

// Longer than any wait of these tests, unless a wake-up is lost.
constexpr absl::Duration kLong = absl::Seconds(20);
constexpr Address kBob = {NodeId(2), 1};

Message To(const Address& peer, size_t frame_bytes = 0) {
  Message message;
  message.set_to(peer);
  if (frame_bytes > 0) message.frames.push_back(Buffer::Allocate(frame_bytes));
  return message;
}

// A peer that only waits and answers each message.
class Echo {
 public:
  Echo() : thread_([this] { Run(); }) {}
  ~Echo() {
    over_ = true;
    transport_->WakeUp();
    thread_.join();
  }
  std::string endpoint() const { return transport_->endpoint(); }

 private:
  void Run() {
    while (!over_) {
      const bool more = transport_->Receive(
          16, [this](Message message) { transport_->Send(MakeReply(message)); });
      transport_->Wait(more ? absl::ZeroDuration() : kLong);
    }
  }

  std::atomic<bool> over_ = false;
  const std::unique_ptr<Transport> transport_ = MustMake({.zmq = {.listen = "tcp://127.0.0.1:0"}});
  std::thread thread_;
};

// The messages that `transport` receives within kLong.
uint64_t Await(Transport& transport, uint64_t count) {
  uint64_t received = 0;
  const absl::Time deadline = MonotonicNow() + kLong;
  while (received < count && MonotonicNow() < deadline) {
    const bool more = transport.Receive(16, [&](Message) { ++received; });
    if (received < count && !more) transport.Wait(kLong);
  }
  return received;
}

TEST(HostTransportTest, NoWakeUpIsLost) {
  Echo bob;
  const auto alice = MustMake({});
  alice->SetRoute(kBob, bob.endpoint());
  const absl::Time start = MonotonicNow();
  constexpr int kTrips = 2000;
  for (int i = 0; i < kTrips; ++i) {
    alice->Send(To(kBob));
    ASSERT_EQ(Await(*alice, 1), 1u) << i;
  }
  EXPECT_LT(MonotonicNow() - start, kLong);
}

TEST(HostTransportTest, AMessageThatFindsNoRoomIsSentLater) {
  Echo bob;
  const auto alice = MustMake({});
  alice->SetRoute(kBob, bob.endpoint());
  constexpr uint64_t kMessages = 200;  // of a MiB: more than a region has room for
  for (uint64_t i = 0; i < kMessages; ++i) alice->Send(To(kBob, 1 << 20));
  EXPECT_EQ(Await(*alice, kMessages), kMessages);
}

TEST(HostTransportTest, AReaderThatNeverReadsPinsFewReplies) {
  const auto server =
      MustMake({.zmq = {.listen = "tcp://127.0.0.1:0", .reply_bytes = kTestReplyBytes}});
  const auto reader = MustMake({.zmq = {.arrived_messages = 4}});
  ExpectFewUnreadReplies(*server, *reader, {NodeId(11), 0}, {NodeId(12), 0});
}

// The connection by which the next message from `sender` arrives at `receiver`; 0 = none within
// kLong. Messages that are lost on the way are sent again.
uint64_t ConnectionOfNext(Transport& sender, Transport& receiver) {
  uint64_t connection = 0;
  const absl::Time deadline = MonotonicNow() + kLong;
  while (connection == 0 && MonotonicNow() < deadline) {
    sender.Send(To(kBob));
    for (int i = 0; i < 5 && connection == 0; ++i) {
      for (Transport* each : {&sender, &receiver}) {
        each->Receive(16, [&](Message message) { connection = message.connection; });
        each->Wait(absl::Milliseconds(5));
      }
    }
  }
  return connection;
}

TEST(HostTransportTest, SharedMemoryIsUsedIfBothSidesWantIt) {
  for (const bool alice_wants : {false, true}) {
    for (const bool bob_wants : {false, true}) {
      const auto bob =
          MustMake({.zmq = {.listen = "tcp://127.0.0.1:0"}, .shared_memory = bob_wants});
      const auto alice = MustMake({.shared_memory = alice_wants});
      alice->SetRoute(kBob, bob->endpoint());
      const uint64_t connection = ConnectionOfNext(*alice, *bob);
      EXPECT_NE(connection, 0u);
      EXPECT_EQ(ShmPeers::IsConnection(connection), alice_wants && bob_wants);
    }
  }
}

TEST(HostTransportTest, ARouteOutlivesThePeersProcess) {
  auto bob = MustMake({.zmq = {.listen = "tcp://127.0.0.1:0"}});
  const std::string endpoint = bob->endpoint();
  const auto alice = MustMake({});
  alice->SetRoute(kBob, endpoint);
  EXPECT_TRUE(ShmPeers::IsConnection(ConnectionOfNext(*alice, *bob)));
  bob.reset();
  // Another one listens there, at first without shared memory.
  bob = MustMake({.zmq = {.listen = endpoint}, .shared_memory = false});
  const uint64_t by_zmq = ConnectionOfNext(*alice, *bob);
  EXPECT_NE(by_zmq, 0u);
  EXPECT_FALSE(ShmPeers::IsConnection(by_zmq));
  bob.reset();
  bob = MustMake({.zmq = {.listen = endpoint}});
  const absl::Time deadline = MonotonicNow() + kLong;
  bool shared = false;
  while (!shared && MonotonicNow() < deadline) {
    shared = ShmPeers::IsConnection(ConnectionOfNext(*alice, *bob));
  }
  EXPECT_TRUE(shared);
}

TEST(HostTransportTest, BothKindsOfPeersShareTheLimit) {
  const auto bob = MustMake({.zmq = {.listen = "tcp://127.0.0.1:0"}});
  const auto by_shm = MustMake({});
  const auto by_zmq = MustMake({.shared_memory = false});
  for (const auto& sender : {&by_shm, &by_zmq}) {
    (*sender)->SetRoute(kBob, bob->endpoint());
    for (int i = 0; i < 100; ++i) (*sender)->Send(To(kBob));
  }
  int received[2] = {0, 0};
  const absl::Time deadline = MonotonicNow() + kLong;
  while (received[0] + received[1] < 200 && MonotonicNow() < deadline) {
    int batch = 0;
    bob->Receive(3, [&](Message message) {
      ++batch;
      ++received[ShmPeers::IsConnection(message.connection) ? 1 : 0];
    });
    EXPECT_LE(batch, 3);
    by_shm->Receive(1, [](Message) {});
    by_shm->Wait(absl::ZeroDuration());
    bob->Wait(absl::ZeroDuration());
  }
  EXPECT_EQ(received[0], 100);
  EXPECT_EQ(received[1], 100);
}

TEST(HostTransportTest, AllPeersThatEndTogetherAreNoticed) {
  constexpr uint32_t kPeers = 8;
  std::vector<std::unique_ptr<Transport>> peers;
  const auto alice = MustMake({});
  uint64_t received = 0;
  for (uint32_t i = 0; i < kPeers; ++i) {
    peers.push_back(MustMake({.zmq = {.listen = "tcp://127.0.0.1:0"}}));
    alice->SetRoute({NodeId(10 + i), 1}, peers.back()->endpoint());
    alice->Send(To({NodeId(10 + i), 1}));
  }
  const absl::Time deadline = MonotonicNow() + kLong;
  while (received < kPeers && MonotonicNow() < deadline) {
    alice->Receive(16, [](Message) {});
    alice->Wait(absl::ZeroDuration());
    for (const auto& peer : peers) {
      peer->Receive(16, [&](Message) { ++received; });
      peer->Wait(absl::ZeroDuration());
    }
  }
  ASSERT_EQ(received, kPeers);
  peers.clear();
  // One wait sees the ends, and the waits after it are not disturbed.
  alice->Wait(absl::ZeroDuration());
  alice->Wait(absl::ZeroDuration());
  alice->Receive(16, [](Message) {});
  const uint64_t dropped_before = alice->counters().dropped;
  for (uint32_t i = 0; i < kPeers; ++i) alice->Send(To({NodeId(10 + i), 1}));
  EXPECT_EQ(alice->counters().dropped, dropped_before) << "they wait in the queue of ZeroMQ";
  const absl::Time start = MonotonicNow();
  alice->Receive(16, [](Message) {});
  alice->Wait(absl::Milliseconds(50));
  EXPECT_GT(MonotonicNow() - start, absl::Milliseconds(40)) << "nothing is left to be noticed";
}

TEST(HostTransportTest, APeersEndIsNoticedThoughAChildHasItsSocket) {
  auto bob = MustMake({.zmq = {.listen = "tcp://127.0.0.1:0"}});
  const auto alice = MustMake({});
  alice->SetRoute(kBob, bob->endpoint());
  ASSERT_TRUE(ShmPeers::IsConnection(ConnectionOfNext(*alice, *bob)));
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  alice->DropRoute(kBob);
  uint64_t dropped = 0;
  const absl::Time deadline = MonotonicNow() + kLong;
  // Bob answers until he notices that Alice has gone.
  const uint64_t connection = uint64_t{1} << 63 | 1;
  while (dropped == 0 && MonotonicNow() < deadline) {
    bob->Wait(absl::Milliseconds(5));
    bob->Receive(16, [](Message) {});
    Message reply = To(kBob);
    reply.connection = connection;
    bob->Send(std::move(reply));
    dropped = bob->counters().dropped;
  }
  EXPECT_GT(dropped, 0u);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace covey
