// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/supervisor_notice.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"

namespace covey {
namespace {

// The end of the supervisor: a socket with a name of its own.
class Supervisor {
 public:
  // As in NOTIFY_SOCKET.
  explicit Supervisor(const std::string& address)
      : address_(address), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    address.copy(name.sun_path, sizeof(name.sun_path));
    const bool is_abstract = address[0] == '@';
    if (is_abstract) name.sun_path[0] = '\0';
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + !is_abstract);
    EXPECT_EQ(bind(socket_.number(), reinterpret_cast<const sockaddr*>(&name), size), 0);
  }
  ~Supervisor() {
    if (address_[0] == '/') unlink(address_.c_str());
  }

  // The next message; empty when there is none.
  std::string Next() const {
    std::array<char, 256> text;
    const ssize_t size = recv(socket_.number(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
  }

 private:
  const std::string address_;
  const Descriptor socket_;
};

std::string Abstract() { return absl::StrCat("@covey-supervisor-test-", getpid()); }

TEST(SupervisorNoticeTest, TellsAnAbstractSocket) {
  const Supervisor supervisor(Abstract());
  EXPECT_TRUE(SendToSupervisor(Abstract(), "READY=1").ok());
  EXPECT_EQ(supervisor.Next(), "READY=1");
  // Only this name, not one that begins with it.
  EXPECT_TRUE(absl::IsUnavailable(SendToSupervisor(absl::StrCat(Abstract(), "0"), "READY=1")));
}

TEST(SupervisorNoticeTest, TellsASocketWithAPath) {
  // Short: test folders may lie deep.
  char folder[] = "/tmp/covey-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = absl::StrCat(folder, "/notify");
  {
    const Supervisor supervisor(path);
    EXPECT_TRUE(SendToSupervisor(path, "READY=1").ok());
    EXPECT_EQ(supervisor.Next(), "READY=1");
  }
  const absl::Status gone = SendToSupervisor(path, "READY=1");
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_NE(gone.message().find(path), std::string::npos) << gone;
  rmdir(folder);
}

TEST(SupervisorNoticeTest, TakesNamesAsLongAsTheyMayBe) {
  const Supervisor supervisor("@" + std::string(sizeof(sockaddr_un::sun_path) - 1, 'x'));
  EXPECT_TRUE(
      SendToSupervisor("@" + std::string(sizeof(sockaddr_un::sun_path) - 1, 'x'), "a").ok());
  EXPECT_EQ(supervisor.Next(), "a");
  for (const std::string& address :
       {std::string(), std::string("relative"), std::string("vsock:2:1234"),
        "/" + std::string(sizeof(sockaddr_un::sun_path) - 1, 'x'),
        "@" + std::string(sizeof(sockaddr_un::sun_path), 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SendToSupervisor(address, "a"))) << address;
  }
}

TEST(SupervisorNoticeTest, DoesNotWaitForASupervisorThatReadsNothing) {
  const Supervisor supervisor(Abstract());
  absl::Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) {
    status = SendToSupervisor(Abstract(), "STATUS=x");
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(SupervisorNoticeTest, SaysWhatItHasToSay) {
  const Supervisor supervisor(Abstract());
  setenv("NOTIFY_SOCKET", Abstract().c_str(), 1);
  NotifyReady("rank 3");
  EXPECT_EQ(supervisor.Next(), "READY=1\nSTATUS=rank 3");
  NotifyStatus("trains");
  EXPECT_EQ(supervisor.Next(), "STATUS=trains");
  NotifyStopping(absl::Seconds(40));
  EXPECT_EQ(supervisor.Next(), "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=40000000");
}

TEST(SupervisorNoticeTest, DoesNothingWithoutASupervisor) {
  const Supervisor supervisor(Abstract());
  unsetenv("NOTIFY_SOCKET");
  NotifyReady("rank 3");
  setenv("NOTIFY_SOCKET", "", 1);
  NotifyReady("rank 3");
  EXPECT_EQ(supervisor.Next(), "");
  // Where nobody listens, the process logs a line and goes on.
  setenv("NOTIFY_SOCKET", "/no/such/socket", 1);
  NotifyReady("rank 3");
}

}  // namespace
}  // namespace covey
