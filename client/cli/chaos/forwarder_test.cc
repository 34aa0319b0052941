// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "client/cli/chaos/forwarder.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace covey::cli {
namespace {

sockaddr_in At(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Listens at a reserved port, which stays reserved.
Descriptor ListenAt(uint16_t port) {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  const int yes = 1;
  setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const sockaddr_in address = At(port);
  EXPECT_EQ(bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  EXPECT_EQ(listen(listener.number(), 4), 0);
  return listener;
}

Descriptor ConnectTo(uint16_t port) {
  Descriptor caller(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = At(port);
  EXPECT_EQ(connect(caller.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  return caller;
}

class ForwarderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto reserved = ReservedPort::Make();
    ASSERT_TRUE(reserved.ok()) << reserved.status();
    reserved_ = *std::move(reserved);
    auto forwarder = Forwarder::Open({reserved_.port()});
    ASSERT_TRUE(forwarder.ok()) << forwarder.status();
    forwarder_ = *std::move(forwarder);
  }

  void Steps() {
    for (int i = 0; i < 20; ++i) forwarder_.Step(absl::Milliseconds(5));
  }
  Descriptor Accept(const Descriptor& listener) {
    Steps();
    return Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK));
  }
  // The bytes that arrive; "" = nothing does, "end" = the sender has finished.
  std::string Receive(const Descriptor& socket) {
    Steps();
    char bytes[64];
    const ssize_t size = recv(socket.number(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size == 0) return "end";
    return std::string(bytes, size > 0 ? static_cast<size_t>(size) : 0);
  }

  ReservedPort reserved_;
  Forwarder forwarder_;
};

TEST_F(ForwarderTest, CarriesBytesBothWaysAndTheEnd) {
  const Descriptor listener = ListenAt(reserved_.port());
  const Descriptor caller = ConnectTo(forwarder_.ports()[0]);
  const Descriptor called = Accept(listener);
  ASSERT_TRUE(called.open());
  ASSERT_EQ(send(caller.number(), "push", 4, 0), 4);
  EXPECT_EQ(Receive(called), "push");
  ASSERT_EQ(send(called.number(), "taken", 5, 0), 5);
  EXPECT_EQ(Receive(caller), "taken");

  shutdown(caller.number(), SHUT_WR);
  EXPECT_EQ(Receive(called), "end");
  ASSERT_EQ(send(called.number(), "last", 4, 0), 4);
  EXPECT_EQ(Receive(caller), "last");
  EXPECT_EQ(forwarder_.connections(), 1u);
  shutdown(called.number(), SHUT_WR);
  EXPECT_EQ(Receive(caller), "end");
  EXPECT_EQ(forwarder_.connections(), 0u);
}

TEST_F(ForwarderTest, WhatIsNotCarriedIsHeldNotLost) {
  const Descriptor listener = ListenAt(reserved_.port());
  const Descriptor caller = ConnectTo(forwarder_.ports()[0]);
  const Descriptor called = Accept(listener);
  ASSERT_EQ(send(caller.number(), "held", 4, 0), 4);
  char bytes[8];
  EXPECT_LT(recv(called.number(), bytes, sizeof(bytes), MSG_DONTWAIT), 0);
  EXPECT_EQ(Receive(called), "held");
}

TEST_F(ForwarderTest, ATargetThatIsNotThereEndsTheConnection) {
  const Descriptor caller = ConnectTo(forwarder_.ports()[0]);
  EXPECT_EQ(Receive(caller), "end");
  EXPECT_EQ(forwarder_.connections(), 0u);
}

}  // namespace
}  // namespace covey::cli
