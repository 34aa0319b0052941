// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/net/message.h"
#include "common/net/transport.h"

namespace covey {

// The bytes of replies that may wait for a reader in the tests of transports.
inline constexpr size_t kTestReplyBytes = 8 << 20;

// A reader asks once and does not read; 1,000 replies of 1 MiB are sent to it. Most are dropped,
// and once it reads, it gets the others, and further ones. Precondition: `server` takes
// kTestReplyBytes, and a few messages at most arrive at `reader` before it reads them.
inline void ExpectFewUnreadReplies(Transport& server, Transport& reader, const Address& reader_is,
                                   const Address& server_is) {
  constexpr uint64_t kReplies = 1000;
  // Of the limit, of the kernel's buffers or the shared memory, and of what has arrived.
  constexpr uint64_t kWaitingMax = 100;
  const absl::Time deadline = MonotonicNow() + absl::Seconds(30);
  reader.SetRoute(server_is, server.endpoint());
  Message request;
  request.set_to(server_is);
  request.envelope.mutable_header()->set_node(reader_is.node.value());
  request.envelope.set_from_loop(reader_is.loop);
  reader.Send(std::move(request));
  std::optional<Message> received;
  while (!received && MonotonicNow() < deadline) {
    server.Receive(1, [&](Message message) { received = std::move(message); });
    server.Wait(absl::Milliseconds(2));
    reader.Wait(absl::ZeroDuration());
  }
  ASSERT_TRUE(received);
  const Buffer frame = Buffer::Allocate(1 << 20);
  const auto reply = [&] {
    Message message = MakeReply(*received);
    message.envelope.mutable_header()->set_node(server_is.node.value());
    message.envelope.set_from_loop(server_is.loop);
    message.frames.push_back(frame);
    server.Send(std::move(message));
  };
  for (uint64_t i = 0; i < kReplies; ++i) {
    reply();
    server.Receive(1, [](Message) {});
  }
  EXPECT_LT(server.counters().sent, kWaitingMax);
  EXPECT_EQ(server.counters().sent + server.counters().dropped, kReplies);

  const uint64_t sent = server.counters().sent;
  while (reader.counters().received < sent && MonotonicNow() < deadline) {
    reader.Receive(16, [](Message) {});
    server.Receive(1, [](Message) {});
    reader.Wait(absl::Milliseconds(2));
  }
  EXPECT_EQ(reader.counters().received, sent);
  reply();
  EXPECT_EQ(server.counters().sent, sent + 1) << "there is room again";
}

}  // namespace covey
