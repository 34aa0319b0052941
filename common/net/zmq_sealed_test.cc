// SPDX-License-Identifier: Apache-2.0

// Transports that seal, over real sockets.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/descriptor.h"
#include "common/net/host_transport.h"
#include "common/net/testing/secured_nodes.h"
#include "common/net/testing/unread_replies.h"
#include "common/net/transport_conformance.h"
#include "common/net/zmq_transport.h"

namespace covey {
namespace {

constexpr Address kAlice = {NodeId(11), 0};
constexpr Address kBob = {NodeId(12), 3};
constexpr char kAnyPort[] = "tcp://127.0.0.1:0";

void SetFrom(const Address& sender, Message& message) {
  message.envelope.mutable_header()->set_node(sender.node.value());
  message.envelope.set_from_loop(sender.loop);
}

std::unique_ptr<Transport> MustMake(const ZmqOptions& options) {
  auto transport = MakeZmqTransport(options);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

class SealedNetwork : public ConformanceNetwork {
 public:
  std::unique_ptr<Transport> Make(const Options& options) override {
    return MustMake({.listen = options.listens ? kAnyPort : "",
                     .queue_messages = options.queue_messages,
                     .keys = nodes_.Join(options.self.node),
                     .loop = options.self.loop});
  }
  std::string DeadEndpoint() override { return MustMake({.listen = kAnyPort})->endpoint(); }

 protected:
  SecuredNodes nodes_;
};

INSTANTIATE_TEST_SUITE_P(ZmqSealed, TransportConformance,
                         testing::Values([] { return std::make_unique<SealedNetwork>(); }));

// The same without shared memory to fall back upon: options reach ZeroMQ.
class SealedHostNetwork : public SealedNetwork {
 public:
  std::unique_ptr<Transport> Make(const Options& options) override {
    auto transport = MakeHostTransport({.zmq = {.listen = options.listens ? kAnyPort : "",
                                                .queue_messages = options.queue_messages,
                                                .keys = nodes_.Join(options.self.node),
                                                .loop = options.self.loop},
                                        .shared_memory = false});
    EXPECT_TRUE(transport.ok());
    return *std::move(transport);
  }
};

INSTANTIATE_TEST_SUITE_P(HostSealed, TransportConformance,
                         testing::Values([] { return std::make_unique<SealedHostNetwork>(); }));

TEST(ZmqSealedReplies, AReaderThatNeverReadsPinsFewReplies) {
  const Address reader_is = {NodeId(11), 0};
  const Address server_is = {NodeId(12), 0};
  SecuredNodes nodes;
  const auto server = MustMake({.listen = kAnyPort,
                                .reply_bytes = kTestReplyBytes,
                                .keys = nodes.Join(server_is.node),
                                .loop = server_is.loop});
  const auto reader =
      MustMake({.arrived_messages = 4, .keys = nodes.Join(reader_is.node), .loop = reader_is.loop});
  ExpectFewUnreadReplies(*server, *reader, reader_is, server_is);
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int PortOf(const std::string& endpoint) {
  const std::vector<std::string> parts = absl::StrSplit(endpoint, ':');
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &port));
  return port;
}

Descriptor ConnectTo(const std::string& endpoint) {
  Descriptor connection(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = Loopback(PortOf(endpoint));
  EXPECT_EQ(
      connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      0);
  return connection;
}

// Passes the bytes of one TCP connection on to `endpoint`, and keeps those that it has passed on.
class Forwarder {
 public:
  explicit Forwarder(std::string endpoint) : to_(std::move(endpoint)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.number(), 1), 0);
    getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    endpoint_ = absl::StrCat("tcp://127.0.0.1:", ntohs(address.sin_port));
  }

  const std::string& endpoint() const { return endpoint_; }
  const std::string& there() const { return there_; }
  const std::string& back() const { return back_; }

  void Run() {
    if (!client_.open()) {
      client_ = Descriptor(accept4(listener_.number(), nullptr, nullptr, 0));
      if (client_.open()) server_ = ConnectTo(to_);
    }
    if (!client_.open()) return;
    Pass(client_, server_, there_);
    Pass(server_, client_, back_);
  }

 private:
  static void Pass(const Descriptor& from, const Descriptor& to, std::string& kept) {
    char bytes[65536];
    while (true) {
      const ssize_t size = recv(from.number(), bytes, sizeof(bytes), MSG_DONTWAIT);
      if (size <= 0) return;
      kept.append(bytes, static_cast<size_t>(size));
      EXPECT_EQ(send(to.number(), bytes, static_cast<size_t>(size), MSG_NOSIGNAL), size);
    }
  }

  const std::string to_;
  const Descriptor listener_ = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  std::string endpoint_;
  Descriptor client_;
  Descriptor server_;
  std::string there_;
  std::string back_;
};

class ZmqSealedTest : public testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(20);

  static Message MessageOf(const std::string& tensor) {
    Message message;
    message.set_to(kBob);
    SetFrom(kAlice, message);
    message.envelope.mutable_pull_request()->set_shard_generation(0x1122334455667788);
    message.frames.push_back(
        Buffer::CopyOf({reinterpret_cast<const uint8_t*>(tensor.data()), tensor.size()}));
    return message;
  }

  // Lets both transports and the forwarder run until `done`.
  bool Until(const std::function<bool()>& done) {
    const absl::Time deadline = MonotonicNow() + kPatience;
    while (!done()) {
      if (MonotonicNow() > deadline) return false;
      for (Transport* transport : {alice_.get(), bob_.get()}) {
        if (transport == nullptr) continue;
        transport->Receive(16, [&](Message message) {
          ++received_;
          if (transport != bob_.get() || !answers_) return;
          Message reply = MakeReply(message);
          SetFrom(kBob, reply);
          reply.frames = message.frames;
          bob_->Send(std::move(reply));
        });
        transport->Wait(absl::Milliseconds(2));
      }
      if (forwarder_ != nullptr) forwarder_->Run();
    }
    return true;
  }

  void Make(bool alice_seals, bool bob_seals) {
    alice_ = MustMake({.keys = alice_seals ? nodes_.Register(kAlice.node) : nullptr});
    bob_ = MustMake({.listen = kAnyPort,
                     .keys = bob_seals ? nodes_.Register(kBob.node) : nullptr,
                     .loop = kBob.loop});
    nodes_.Publish();
  }
  // Alice's messages pass through the forwarder.
  void MakeForwarded(bool sealed) {
    Make(sealed, sealed);
    forwarder_ = std::make_unique<Forwarder>(bob_->endpoint());
    alice_->SetRoute(kBob, forwarder_->endpoint());
  }

  SecuredNodes nodes_;
  std::unique_ptr<Transport> alice_;
  std::unique_ptr<Transport> bob_;
  std::unique_ptr<Forwarder> forwarder_;
  bool answers_ = false;
  uint64_t received_ = 0;
};

// Whether a known tensor can be seen on the wire, there and back.
class CaptureTest : public ZmqSealedTest, public testing::WithParamInterface<bool> {};

TEST_P(CaptureTest, ShowsTensorsOfPlainTransportsOnly) {
  const bool sealed = GetParam();
  MakeForwarded(sealed);
  answers_ = true;
  // Small ones are copied by libzmq, large ones are not.
  const std::string small = "the weights of a small table are nobody's business";
  std::string large;
  while (large.size() < 200'000) large += "and neither are those of a large one; ";
  alice_->Send(MessageOf(small));
  alice_->Send(MessageOf(large));
  ASSERT_TRUE(Until([&] { return received_ == 4; }));
  const auto shows = [](const std::string& bytes, const std::string& text) {
    return bytes.find(text) != std::string::npos;
  };
  for (const std::string* bytes : {&forwarder_->there(), &forwarder_->back()}) {
    EXPECT_GT(bytes->size(), large.size());
    EXPECT_EQ(shows(*bytes, small), !sealed);
    EXPECT_EQ(shows(*bytes, "neither are those of a large one"), !sealed);
  }
  // Nor what is asked for.
  EXPECT_EQ(shows(forwarder_->there(), "\x88\xef\x99\xab\xc5\xe8\x8c\x91\x11"), !sealed);
}

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, CaptureTest, testing::Bool());

// The bytes of a whole connection, sent again by another one.
class ReplayTest : public ZmqSealedTest, public testing::WithParamInterface<bool> {};

TEST_P(ReplayTest, DeliversAgainOnlyWhatIsPlain) {
  const bool sealed = GetParam();
  MakeForwarded(sealed);
  for (int i = 0; i < 5; ++i) alice_->Send(MessageOf("a push"));
  ASSERT_TRUE(Until([&] { return received_ == 5; }));
  // ZMTP's greeting and one command (its size is in the second byte), which a peer that replays
  // them answers as the first one did; then the messages.
  const std::string& bytes = forwarder_->there();
  const size_t handshake = 64 + 2 + static_cast<uint8_t>(bytes[65]);
  const Descriptor again = ConnectTo(bob_->endpoint());
  const auto send_again = [&](size_t begin, size_t end) {
    const ssize_t size = static_cast<ssize_t>(end - begin);
    EXPECT_EQ(send(again.number(), &bytes[begin], end - begin, MSG_NOSIGNAL), size);
  };
  send_again(0, handshake);
  ASSERT_TRUE(Until([&, answered = size_t{0}]() mutable {
    char answer[1000];
    answered += static_cast<size_t>(
        std::max<ssize_t>(0, recv(again.number(), answer, sizeof(answer), MSG_DONTWAIT)));
    return answered > 64 + 2;
  }));
  send_again(handshake, bytes.size());
  EXPECT_TRUE(Until([&] { return received_ + bob_->counters().refused.total() == 10; }))
      << received_ << " received, " << bob_->counters().refused.total() << " malformed";
  EXPECT_EQ(received_, sealed ? 5u : 10u);
}

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, ReplayTest, testing::Bool());

TEST_F(ZmqSealedTest, AnUnsealedMessageIsRefusedBySecuredTransports) {
  Make(/*alice_seals=*/false, /*bob_seals=*/true);
  alice_->SetRoute(kBob, bob_->endpoint());
  alice_->Send(MessageOf("x"));
  EXPECT_TRUE(Until([&] { return bob_->counters().refused.total() == 1; }));
  EXPECT_EQ(received_, 0u);
}

TEST_F(ZmqSealedTest, ASealedMessageIsRefusedByOthers) {
  nodes_.Register(kBob.node);
  Make(/*alice_seals=*/true, /*bob_seals=*/false);
  alice_->SetRoute(kBob, bob_->endpoint());
  alice_->Send(MessageOf("x"));
  EXPECT_TRUE(Until([&] { return bob_->counters().refused.total() == 1; }));
  EXPECT_EQ(received_, 0u);
}

// Never in the clear instead.
TEST_F(ZmqSealedTest, AMessageToANodeWithoutAKeyIsDropped) {
  Make(/*alice_seals=*/true, /*bob_seals=*/false);
  alice_->SetRoute(kBob, bob_->endpoint());
  alice_->Send(MessageOf("x"));
  EXPECT_EQ(alice_->counters().dropped, 1u);
  EXPECT_EQ(alice_->counters().sent, 0u);
}

// Nothing else wakes Bob up.
TEST_F(ZmqSealedTest, AHeldMessageIsDeliveredSoonAfterItsSenderIsKnown) {
  Make(/*alice_seals=*/true, /*bob_seals=*/true);
  const proto::Node alice = nodes_.Remove(kAlice.node);
  nodes_.Publish();
  alice_->SetRoute(kBob, bob_->endpoint());
  alice_->Send(MessageOf("x"));
  const absl::Time start = MonotonicNow();
  while (MonotonicNow() < start + absl::Milliseconds(300)) {
    const bool more = bob_->Receive(1, [&](const Message&) { ++received_; });
    bob_->Wait(more ? absl::ZeroDuration() : absl::Milliseconds(10));
  }
  EXPECT_EQ(received_, 0u);
  EXPECT_EQ(bob_->counters().refused.total() + bob_->counters().dropped, 0u);
  // A view may come while he sleeps, and he would not hear of it.
  const absl::Time asleep = MonotonicNow();
  bob_->Wait(kPatience);
  EXPECT_LT(MonotonicNow() - asleep, absl::Seconds(1));
  nodes_.node(kAlice.node) = alice;
  nodes_.Publish();
  const absl::Time published = MonotonicNow();
  while (true) {
    const bool more = bob_->Receive(1, [&](const Message&) { ++received_; });
    if (received_ > 0 || MonotonicNow() > published + kPatience) break;
    bob_->Wait(more ? absl::ZeroDuration() : kPatience);
  }
  EXPECT_EQ(received_, 1u);
  EXPECT_LT(MonotonicNow() - published, absl::Seconds(1));
}

}  // namespace
}  // namespace covey
