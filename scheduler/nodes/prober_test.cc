// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/prober.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using Result = proto::ProbeReply::Result;

uint16_t PortOf(const std::string& endpoint) {
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

// A socket that listens on a port of this machine.
class Listener {
 public:
  explicit Listener(int backlog) : Listener(backlog, "tcp://127.0.0.1:0") {}
  // Where another one has listened.
  Listener(int backlog, const std::string& endpoint) : file_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(PortOf(endpoint));
    const int yes = 1;
    EXPECT_EQ(setsockopt(file_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
    EXPECT_EQ(bind(file_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(file_, backlog), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { Close(); }
  void Close() {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }
  std::string endpoint() const { return absl::StrCat("tcp://127.0.0.1:", port_); }

 private:
  int file_;
  uint32_t port_ = 0;
};

Message Request(uint64_t node, const std::string& endpoint) {
  Message request;
  request.set_to({kSchedulerNode, kProbeLoop});
  request.envelope.mutable_header()->set_node(kSchedulerNode.value());
  proto::ProbeRequest& body = *request.envelope.mutable_probe_request();
  body.set_node(node);
  body.set_incarnation(100 + node);
  body.set_endpoint(endpoint);
  return request;
}

// For tests in which the whole limit has to pass.
constexpr absl::Duration kShort = absl::Milliseconds(50);
// Until a refused probe is repeated.
constexpr absl::Duration kSoon = absl::Milliseconds(20);

std::vector<Message> Answers(Prober& prober, size_t count) {
  std::vector<Message> answers;
  while (answers.size() < count) {
    prober.Receive(64, [&](Message message) { answers.push_back(std::move(message)); });
    if (answers.size() < count) prober.Wait(absl::Seconds(20));
  }
  return answers;
}

Result Probe(const std::string& endpoint, absl::Duration limit = absl::Seconds(20)) {
  Prober prober({.limit = limit, .again_after = kSoon});
  prober.Send(Request(7, endpoint));
  const Message answer = Answers(prober, 1)[0];
  EXPECT_EQ(answer.to(), (Address{kSchedulerNode, 0}));
  EXPECT_EQ(answer.envelope.from_loop(), kProbeLoop);
  EXPECT_EQ(answer.envelope.probe_reply().node(), 7);
  EXPECT_EQ(answer.envelope.probe_reply().incarnation(), 107);
  return answer.envelope.probe_reply().result();
}

TEST(ProberTest, SomebodyWhoListensIsConnected) {
  Listener listener(8);
  EXPECT_EQ(Probe(listener.endpoint(), kShort), proto::ProbeReply::CONNECTED);
}

// A process that is being killed closes one socket after the other.
TEST(ProberTest, WhoStopsListeningAMomentLaterRefuses) {
  Listener listener(8);
  Prober prober({.limit = absl::Seconds(20), .again_after = kSoon});
  prober.Send(Request(7, listener.endpoint()));
  for (int i = 0; i < 3; ++i) {
    prober.Receive(64, [](Message) { ADD_FAILURE() << "too soon"; });
    prober.Wait(absl::Milliseconds(20));
  }
  listener.Close();
  EXPECT_EQ(Answers(prober, 1)[0].envelope.probe_reply().result(), proto::ProbeReply::REFUSED);
}

TEST(ProberTest, APortThatWasClosedRefuses) {
  Listener listener(8);
  listener.Close();
  EXPECT_EQ(Probe(listener.endpoint()), proto::ProbeReply::REFUSED);
}

// Like a proxy that restarts.
TEST(ProberTest, OneRefusalIsTriedOnceMore) {
  Listener listener(8);
  const std::string endpoint = listener.endpoint();
  listener.Close();
  Prober prober({.limit = kShort, .again_after = absl::Milliseconds(200)});
  prober.Send(Request(7, endpoint));
  prober.Wait(absl::Milliseconds(50));
  prober.Receive(64, [](Message) { ADD_FAILURE() << "too soon"; });
  const Listener again(8, endpoint);
  EXPECT_EQ(Answers(prober, 1)[0].envelope.probe_reply().result(), proto::ProbeReply::CONNECTED);
}

TEST(ProberTest, WhoDoesNotAcceptIsSilent) {
  // The kernel drops attempts beyond the backlog, as a frozen machine would.
  Listener listener(0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string endpoint = listener.endpoint();
  address.sin_port = htons(PortOf(endpoint));
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  EXPECT_EQ(Probe(endpoint, absl::Milliseconds(50)), proto::ProbeReply::SILENT);
  for (const int filler : fillers) close(filler);
}

TEST(ProberTest, UnixSocketsAreTriedToo) {
  const std::string name = absl::StrCat("covey-prober-test-", getpid());
  EXPECT_EQ(Probe(absl::StrCat("ipc://@", name)), proto::ProbeReply::REFUSED);
  const int file = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(file, 8), 0);
  EXPECT_EQ(Probe(absl::StrCat("ipc://@", name), kShort), proto::ProbeReply::CONNECTED);
  close(file);

  // Short: a socket's path has 107 bytes at most, and test folders may lie deep.
  char folder[] = "/tmp/covey-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = absl::StrCat(folder, "/socket");
  EXPECT_EQ(Probe(absl::StrCat("ipc://", path)), proto::ProbeReply::SILENT)
      << "somebody may have removed it";
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(bind(left, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(left, 8), 0);
  EXPECT_EQ(Probe(absl::StrCat("ipc://", path), kShort), proto::ProbeReply::CONNECTED);
  close(left);  // as a killed process leaves it: the name is still there
  EXPECT_EQ(Probe(absl::StrCat("ipc://", path)), proto::ProbeReply::REFUSED);
  unlink(path.c_str());
  rmdir(folder);
}

TEST(ProberTest, WhatIsNoEndpointIsSilent) {
  for (const std::string endpoint :
       {"", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:99999",
        "tcp://localhost:80", "tcp://[::1:80", "ipc://", "udp://127.0.0.1:80"}) {
    EXPECT_EQ(Probe(endpoint), proto::ProbeReply::SILENT) << endpoint;
  }
  EXPECT_EQ(Probe(absl::StrCat("ipc://", std::string(300, 'x'))), proto::ProbeReply::SILENT);
}

TEST(ProberTest, TooManyProbesAreAnsweredSilent) {
  // Addresses reserved for documentation: no host replies there.
  Prober prober({.limit = absl::Milliseconds(20), .under_way_max = 1, .waiting_max = 2});
  Listener listener(8);
  for (uint64_t node = 1; node <= 8; ++node) prober.Send(Request(node, "tcp://192.0.2.1:9"));
  EXPECT_EQ(Answers(prober, 8).size(), 8);
  // There is room again.
  prober.Send(Request(9, listener.endpoint()));
  EXPECT_EQ(Answers(prober, 1)[0].envelope.probe_reply().result(), proto::ProbeReply::CONNECTED);
}

TEST(ProberTest, WakeUpEndsAWait) {
  Prober prober({});
  std::thread other([&] { prober.WakeUp(); });
  prober.Wait(absl::InfiniteDuration());
  other.join();
}

}  // namespace
}  // namespace covey::scheduler
