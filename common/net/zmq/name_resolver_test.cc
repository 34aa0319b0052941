// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/net/testing/named_endpoints_fixture.h"

namespace covey {
namespace {

// What the resolver of this process answers for each name.
enum class Answer { kAddress, kNoAddress, kFailure };
std::atomic<Answer> of_ipv4, of_ipv6;

// 10.0.0.1 and fd00::1. `query`: a DNS message with one question.
std::string Reply(std::string query) {
  const size_t end = query.find('\0', 12) + 5;  // of the question
  const bool is_ipv6 = query[end - 3] == 28;
  const Answer answer = is_ipv6 ? of_ipv6 : of_ipv4;
  std::string reply = query.substr(0, end);
  reply[2] = '\x81';
  reply[3] = answer == Answer::kFailure ? '\x82' : '\x80';
  reply.replace(6, 6, 6, '\0');
  if (answer != Answer::kAddress) return reply;
  reply[7] = 1;
  reply += std::string("\xc0\x0c\0", 3) + query[end - 3] + std::string("\0\1\0\0\0\5\0", 7);
  return reply +
         (is_ipv6 ? "\x10\xfd" + std::string(14, '\0') + '\1' : std::string("\4\n\0\0\1", 5));
}

// Gives this process a network and a resolver of its own. False: it may not.
bool TakeOverTheResolver() {
  const std::string mapping = absl::StrCat("0 ", getuid(), " 1");
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) return false;
    std::ofstream("/proc/self/uid_map") << mapping;
  }
  const int resolver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback = {};
  std::string("lo").copy(loopback.ifr_name, IFNAMSIZ - 1);
  loopback.ifr_flags = IFF_UP;
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(53);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string config = absl::StrCat(testing::TempDir(), "/resolv.conf");
  std::ofstream(config) << "nameserver 127.0.0.1\noptions attempts:1\n";
  if (ioctl(resolver, SIOCSIFFLAGS, &loopback) != 0 ||
      bind(resolver, reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount(config.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0) {
    return false;
  }
  std::thread([resolver] {
    for (;;) {
      char query[512];
      sockaddr_in from = {};
      socklen_t size = sizeof(from);
      auto* const address = reinterpret_cast<sockaddr*>(&from);
      const ssize_t bytes = recvfrom(resolver, query, sizeof(query), 0, address, &size);
      if (bytes < 17) continue;
      const std::string reply = Reply(std::string(query, static_cast<size_t>(bytes)));
      sendto(resolver, reply.data(), reply.size(), 0, address, size);
    }
  }).detach();
  return true;
}

// The lookups are answered by a resolver that the test controls.
class NameResolverTest : public NamedEndpointsFixture {
 protected:
  static void SetUpTestSuite() { is_there_ = TakeOverTheResolver(); }
  void SetUp() override {
    if (!is_there_) GTEST_SKIP() << "needs namespaces of its own";
  }

  // The changes of the next lookup, with these answers.
  Changes AwaitWith(Answer ipv4, Answer ipv6) {
    of_ipv4 = ipv4;
    of_ipv6 = ipv6;
    // Looks up the name at once.
    if (!names_.any()) names_.Add(kPeer, "tcp://host.example:7000");
    now_ += absl::Seconds(30);
    return Await();
  }

  const Changes kIpv4 = {{kPeer, "tcp://10.0.0.1:7000"}};
  const Changes kIpv6 = {{kPeer, "tcp://[fd00::1]:7000"}};

 private:
  static inline bool is_there_ = false;
};

TEST_F(NameResolverTest, ANameWithBothHasAnAddressOfIpv4) {
  EXPECT_EQ(AwaitWith(Answer::kAddress, Answer::kAddress), kIpv4);
}

TEST_F(NameResolverTest, ANameWithoutIpv4HasOneOfIpv6) {
  EXPECT_EQ(AwaitWith(Answer::kNoAddress, Answer::kAddress), kIpv6);
}

TEST_F(NameResolverTest, AFailureDoesNotMoveAHostToItsOtherAddress) {
  EXPECT_EQ(AwaitWith(Answer::kAddress, Answer::kAddress), kIpv4);
  EXPECT_EQ(AwaitWith(Answer::kFailure, Answer::kAddress), Changes());
  EXPECT_EQ(AwaitWith(Answer::kAddress, Answer::kAddress), Changes()) << "it is what it was";
  EXPECT_EQ(AwaitWith(Answer::kNoAddress, Answer::kAddress), kIpv6);
}

}  // namespace
}  // namespace covey
