// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq_transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/descriptor.h"
#include "common/base/random.h"
#include "common/net/testing/unread_replies.h"
#include "common/net/transport_conformance.h"

namespace covey {
namespace {

std::unique_ptr<Transport> MustMake(const ZmqOptions& options) {
  auto transport = MakeZmqTransport(options);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

class ZmqNetwork : public ConformanceNetwork {
 public:
  enum class Kind { kTcp, kTcpOfIpv6, kIpc };
  explicit ZmqNetwork(Kind kind) : kind_(kind) {}

  ~ZmqNetwork() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Transport> Make(const Options& options) override {
    return MustMake(
        {.listen = options.listens ? Listen() : "", .queue_messages = options.queue_messages});
  }
  std::string DeadEndpoint() override { return Make({})->endpoint(); }

 private:
  // Short, because a socket's path has at most 107 characters and Bazel's own directories are long.
  static std::string MakeDirectory() {
    char path[] = "/tmp/covey-XXXXXX";
    EXPECT_NE(mkdtemp(path), nullptr);
    return path;
  }

  std::string Listen() {
    switch (kind_) {
      case Kind::kTcp:
        return "tcp://127.0.0.1:0";
      case Kind::kTcpOfIpv6:
        return "tcp://[::1]:0";
      case Kind::kIpc:
        break;
    }
    return absl::StrCat("ipc://", directory_, "/", ++made_);
  }

  const Kind kind_;
  const std::string directory_ = MakeDirectory();
  int made_ = 0;
};

INSTANTIATE_TEST_SUITE_P(ZmqTcp, TransportConformance, testing::Values([] {
                           return std::make_unique<ZmqNetwork>(ZmqNetwork::Kind::kTcp);
                         }));
std::vector<MakeConformanceNetwork> NetworksOfIpv6() {
  // Some machines have none of its addresses.
  const Descriptor listener(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  if (bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return {[] { return std::make_unique<ZmqNetwork>(ZmqNetwork::Kind::kTcpOfIpv6); }};
}
INSTANTIATE_TEST_SUITE_P(ZmqTcpOfIpv6, TransportConformance, testing::ValuesIn(NetworksOfIpv6()));
INSTANTIATE_TEST_SUITE_P(ZmqIpc, TransportConformance, testing::Values([] {
                           return std::make_unique<ZmqNetwork>(ZmqNetwork::Kind::kIpc);
                         }));

TEST(ZmqTransportTest, AnAddressInUseIsOneClearLine) {
  const auto first = MustMake({.listen = "tcp://127.0.0.1:0"});
  const auto second = MakeZmqTransport({.listen = first->endpoint()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(),
            absl::StrCat("cannot listen on ", first->endpoint(),
                         ": address already in use; choose another port or 0"));
}

TEST(ZmqTransportTest, AReaderThatNeverReadsPinsFewReplies) {
  const auto server = MustMake({.listen = "tcp://127.0.0.1:0", .reply_bytes = kTestReplyBytes});
  const auto reader = MustMake({.arrived_messages = 4});
  ExpectFewUnreadReplies(*server, *reader, {NodeId(11), 0}, {NodeId(12), 0});
}

TEST(ZmqTransportTest, AnAddressOfNobodyIsRefused) {
  const auto status = MakeZmqTransport({.listen = "tcp://192.0.2.1:0"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeZmqTransport({.listen = "nonsense"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ZmqTransportTest, ReachesAPeerByItsName) {
  const auto peer = MustMake({.listen = "tcp://127.0.0.1:0"});
  const auto sender = MustMake({});
  const Address to = {NodeId(2), 0};
  sender->SetRoute(to, absl::StrReplaceAll(peer->endpoint(), {{"127.0.0.1", "localhost"}}));
  const absl::Time until = MonotonicNow() + absl::Seconds(20);
  bool arrived = false;
  while (!arrived && MonotonicNow() < until) {
    Message message;
    message.set_to(to);
    sender->Send(std::move(message));  // dropped, before the name has an address
    sender->Wait(absl::Milliseconds(2));
    peer->Wait(absl::Milliseconds(2));
    peer->Receive(1, [&](Message) { arrived = true; });
  }
  EXPECT_TRUE(arrived);
}

TEST(ZmqTransportTest, APeerWithoutAnAddressIsARouteLikeAnyOther) {
  const auto sender = MustMake({});
  const Address to = {NodeId(2), 0};
  sender->SetRoute(to, "tcp://nowhere.invalid:7000");
  Message message;
  message.set_to(to);
  sender->Send(std::move(message));
  EXPECT_EQ(sender->counters().dropped, 1u);
  sender->DropRoute(to);
  sender->Wait(absl::Milliseconds(20));
}

// A transport, and a stranger that sends it arbitrary bytes.
class ZmqStrangerTest : public testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(20);

  bool Until(const std::function<bool()>& done) {
    const absl::Time deadline = MonotonicNow() + kPatience;
    while (!done()) {
      if (MonotonicNow() > deadline) return false;
      transport_->Receive(16, [&](Message) { ++received_; });
      transport_->Wait(absl::Milliseconds(2));
    }
    return true;
  }

  // After malformed input, valid messages still arrive.
  void ExpectAlive() {
    const uint64_t before = received_;
    const auto honest = MustMake({});
    const Address to = {NodeId(2), 0};
    honest->SetRoute(to, transport_->endpoint());
    Message message;
    message.set_to(to);
    honest->Send(std::move(message));
    EXPECT_TRUE(Until([&] { return received_ > before; }));
  }

  // A plain TCP connection that sends `bytes`, then closes.
  void SendRaw(const std::string& bytes) {
    const std::vector<std::string> parts = absl::StrSplit(transport_->endpoint(), ':');
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(parts.back(), &port));
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    [[maybe_unused]] const ssize_t sent =
        send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(connection);
  }

  const std::unique_ptr<Transport> transport_ = MustMake({.listen = "tcp://127.0.0.1:0"});
  uint64_t received_ = 0;
};

TEST_F(ZmqStrangerTest, CountsRawBytesOnThePort) {
  Random random(1);
  uint64_t sent = 0;
  for (const size_t size : {1, 12, 64, 500, 100000}) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    bytes[0] = 'G';  // not the first byte of a greeting
    SendRaw(bytes);
    ++sent;
  }
  SendRaw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ++sent;
  EXPECT_TRUE(Until([&] { return transport_->counters().refused.total() >= sent; }))
      << transport_->counters().refused.total() << " of " << sent;
  ExpectAlive();
}

TEST_F(ZmqStrangerTest, CountsAGreetingThatBreaksOff) {
  SendRaw(std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12));
  EXPECT_TRUE(Until([&] { return transport_->counters().refused.total() >= 1; }));
  ExpectAlive();
}

// The greeting is valid; the bytes after it are not a valid message.
class ZmqForeignerTest : public ZmqStrangerTest {
 protected:
  ZmqForeignerTest() { zmq_setsockopt(socket_, ZMQ_LINGER, "\0\0\0\0", 4); }
  ~ZmqForeignerTest() override {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }

  void Connect() { ASSERT_EQ(zmq_connect(socket_, transport_->endpoint().c_str()), 0); }
  void SendParts(const std::vector<std::string>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      zmq_send(socket_, parts[i].data(), parts[i].size(), i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
    }
  }
  static std::string Head(Message message) {
    const auto frames = EncodeMessage({}, std::move(message));
    return std::string(reinterpret_cast<const char*>((*frames)[0].data()), (*frames)[0].size());
  }

  void* const context_ = zmq_ctx_new();
  void* const socket_ = zmq_socket(context_, ZMQ_DEALER);
};

TEST_F(ZmqForeignerTest, CountsMessagesThatAreNotOurs) {
  Connect();
  Message one_frame;
  one_frame.frames.push_back(Buffer::Allocate(8));
  const std::string head = Head(one_frame);
  SendParts({""});
  SendParts({"garbage"});
  SendParts({head});                      // its frame is missing
  SendParts({head, "1234567"});           // too short
  SendParts({head, "12345678", "more"});  // too many
  SendParts({head.substr(0, head.size() - 1), "12345678"});
  SendParts(std::vector<std::string>(100, "x"));
  SendParts({"a", std::string(100000, 'x'), std::string(100000, 'y')});
  SendParts({head, std::string(100000, 'x'), std::string(100000, 'y'), "z"});
  SendParts({head, std::string(100000, 'x'), std::string(100000, 'y'), "3", "4", "5", "6"});
  SendParts({head, "12345678"});  // right
  EXPECT_TRUE(Until([&] { return transport_->counters().refused.total() == 10 && received_ == 1; }))
      << transport_->counters().refused.total();
  ExpectAlive();
}

TEST_F(ZmqForeignerTest, RefusesIdentitiesThatPeersChoose) {
  zmq_setsockopt(socket_, ZMQ_ROUTING_ID, "me", 2);
  Connect();
  SendParts({Head(Message())});
  EXPECT_TRUE(Until([&] { return transport_->counters().refused.total() == 1; }));
  EXPECT_EQ(received_, 0u);
  ExpectAlive();
}

TEST_F(ZmqForeignerTest, DisconnectsAPeerWhosePartIsBeyondTheLimit) {
  Connect();
  SendParts({std::string(kFrameBytesMax + 1, 'x')});
  SendParts({Head(Message())});
  EXPECT_TRUE(Until([&] { return received_ == 1; }));
  ExpectAlive();
}

TEST(ZmqTransportTest, AMessageBeyondTheLimitsIsDroppedBySender) {
  const auto transport = MustMake({});
  const Address to = {NodeId(2), 0};
  transport->SetRoute(to, "tcp://127.0.0.1:1");
  Message message;
  message.set_to(to);
  message.frames.push_back(Buffer::Allocate(kFrameBytesMax + 1));
  transport->Send(std::move(message));
  EXPECT_EQ(transport->counters().dropped, 1u);
}

TEST(ZmqTransportTest, ARouteToNonsenseDropsItsMessages) {
  const auto transport = MustMake({});
  const Address to = {NodeId(2), 0};
  transport->SetRoute(to, "carrier-pigeon://roof");
  Message message;
  message.set_to(to);
  transport->Send(std::move(message));
  EXPECT_EQ(transport->counters().dropped, 1u);
}

}  // namespace
}  // namespace covey
