// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/blocking_socket.h"

#include <gtest/gtest.h>

#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {
namespace {

// Connects to where a thread accepts, and sends it `sent`; returns what the thread has received.
std::vector<uint8_t> Exchange(const std::string& endpoint, const std::vector<uint8_t>& sent,
                              uint64_t& sum) {
  std::promise<std::string> address;
  std::vector<uint8_t> received(sent.size());
  std::thread acceptor([&] {
    auto socket = BlockingSocket::AcceptOne(endpoint, [&](const std::string& text) {
      address.set_value(text);
      return absl::OkStatus();
    });
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(socket->ReceiveAndRead(received.data(), received.size(), sum).ok());
    EXPECT_TRUE(socket->Send("x", 1).ok());
  });
  const std::string listening = address.get_future().get();
  uint32_t port = 0;
  auto socket = endpoint == "tcp" && absl::SimpleAtoi(listening, &port)
                    ? BlockingSocket::ConnectTcp(static_cast<uint16_t>(port))
                    : BlockingSocket::ConnectUnix(listening);
  EXPECT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(socket->Send(sent.data(), sent.size()).ok());
  char answer = 0;
  EXPECT_TRUE(socket->Receive(&answer, 1).ok());
  EXPECT_EQ(answer, 'x');
  // The other end closes.
  EXPECT_FALSE(socket->Receive(&answer, 1).ok());
  acceptor.join();
  return received;
}

TEST(BlockingSocketTest, CarriesMoreThanOneCall) {
  std::vector<uint8_t> bytes(3 << 20);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  const auto folder = TemporaryFolder::Make();
  ASSERT_TRUE(folder.ok());
  for (const std::string& endpoint : {std::string("tcp"), (*folder)->path() + "/socket"}) {
    uint64_t sum = 0;
    EXPECT_EQ(Exchange(endpoint, bytes, sum), bytes) << endpoint;
    EXPECT_GT(sum, 0u);
  }
}

TEST(BlockingSocketTest, NamesWhatFails) {
  const auto port = FreeTcpPort();
  ASSERT_TRUE(port.ok());
  EXPECT_GT(*port, 0);
  EXPECT_FALSE(BlockingSocket::ConnectUnix("no/such/socket").ok());
  EXPECT_FALSE(BlockingSocket::ConnectUnix(std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace covey::cli
