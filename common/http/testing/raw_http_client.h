// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/descriptor.h"
#include "gtest/gtest.h"

namespace covey {

// A client of an HTTP server that sends what a test wants.
class RawHttpClient {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(20);

  // Connects to a port of this host.
  explicit RawHttpClient(uint32_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = absl::ToTimeval(kPatience);
    setsockopt(socket_.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(socket_.number(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Send(const std::string& text) {
    send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // All that comes until the server closes.
  std::string Receive() {
    std::string all;
    char piece[4096];
    while (true) {
      const ssize_t size = recv(socket_.number(), piece, sizeof(piece), 0);
      if (size <= 0) return all;
      all.append(piece, static_cast<size_t>(size));
    }
  }
  std::string Ask(const std::string& method, const std::string& target) {
    Send(absl::StrCat(method, " ", target, " HTTP/1.1\r\nHost: here\r\n\r\n"));
    return Receive();
  }

 private:
  const Descriptor socket_;
};

}  // namespace covey
