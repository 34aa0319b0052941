// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/socket_poller.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/net/zmq/part_reader.h"

namespace covey {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

// A router and a dealer that is connected to it.
class SocketPollerTest : public testing::Test {
 protected:
  static constexpr ZmqSocket::Limits kLimits = {
      .queue_messages = 10, .arrived_messages = 10, .part_bytes = 1000};

  SocketPollerTest() {
    EXPECT_EQ(zmq_bind(router_->handle(), "inproc://router"), 0);
    EXPECT_EQ(zmq_connect(dealer_->handle(), "inproc://router"), 0);
  }
  ~SocketPollerTest() override {
    router_.reset();
    dealer_.reset();
    zmq_ctx_term(context_);
  }

  void Send(ZmqSocket& socket) {
    ZmqPart part(1);
    ASSERT_TRUE(socket.SendPart(part, {.last = true}));
  }

  // Reads the dealer's message and replies to it.
  void ReplyToDealer() {
    PartReader parts(*router_);
    ASSERT_TRUE(parts.Next());
    ZmqPart id(parts.bytes().size());
    std::copy(parts.bytes().begin(), parts.bytes().end(), id.data());
    parts.SkipRest();
    ASSERT_TRUE(router_->SendPart(id, {.last = false}));
    Send(*router_);
  }

  absl::Duration DurationOfWait(absl::Duration timeout) {
    const absl::Time start = MonotonicNow();
    poller_.Wait(timeout);
    return MonotonicNow() - start;
  }

  void* const context_ = zmq_ctx_new();
  std::unique_ptr<ZmqSocket> router_ =
      std::make_unique<ZmqSocket>(context_, ZmqSocket::Kind::kRouter, kLimits);
  std::unique_ptr<ZmqSocket> dealer_ =
      std::make_unique<ZmqSocket>(context_, ZmqSocket::Kind::kDealer, kLimits);
  SocketPoller poller_;
};

TEST_F(SocketPollerTest, ReadySocketsHaveTheirTurnsInOrder) {
  EXPECT_EQ(poller_.TakeReady(), nullptr);
  poller_.Add(*router_);
  poller_.Add(*dealer_);
  poller_.MarkReady(*router_);  // is in the list already
  EXPECT_EQ(poller_.TakeReady(), router_.get());
  poller_.MarkReady(*router_);
  EXPECT_EQ(poller_.TakeReady(), dealer_.get());
  EXPECT_TRUE(poller_.HasReady());
  EXPECT_EQ(poller_.TakeReady(), router_.get());
  EXPECT_FALSE(poller_.HasReady());
  EXPECT_EQ(poller_.TakeReady(), nullptr);
}

TEST_F(SocketPollerTest, WaitFindsInput) {
  poller_.Add(*router_);
  poller_.Add(*dealer_);
  // Both are read until they are empty.
  poller_.Wait(absl::ZeroDuration());
  EXPECT_FALSE(poller_.HasReady());
  Send(*dealer_);
  poller_.Wait(kPatience);
  EXPECT_EQ(poller_.TakeReady(), router_.get());
  EXPECT_TRUE(router_->HasInput());
}

TEST_F(SocketPollerTest, WaitDoesNotBlockWhileAReadySocketHasInput) {
  poller_.Add(*dealer_);
  poller_.Wait(absl::ZeroDuration());
  Send(*dealer_);
  ReplyToDealer();
  // Consumes the event, so that the descriptor does not show the input.
  ASSERT_TRUE(dealer_->HasInput());
  poller_.MarkReady(*dealer_);
  EXPECT_LT(DurationOfWait(kPatience), kPatience / 2);
  EXPECT_EQ(poller_.TakeReady(), dealer_.get());
}

TEST_F(SocketPollerTest, ARemovedSocketHasNoTurn) {
  poller_.Add(*router_);
  poller_.Remove(*router_);
  EXPECT_FALSE(poller_.HasReady());
  Send(*dealer_);
  poller_.Wait(absl::Milliseconds(20));
  EXPECT_FALSE(poller_.HasReady());
  poller_.Add(*router_);
  EXPECT_EQ(poller_.TakeReady(), router_.get());
}

TEST_F(SocketPollerTest, WakeUpEndsOneWait) {
  poller_.WakeUp();
  poller_.WakeUp();
  EXPECT_LT(DurationOfWait(kPatience), kPatience / 2);
  EXPECT_GE(DurationOfWait(absl::Milliseconds(20)), absl::Milliseconds(20));
}

TEST_F(SocketPollerTest, AShortWaitIsNotRounded) {
  // A timeout rounded to milliseconds would end these at once.
  absl::Duration sum;
  for (int i = 0; i < 10; ++i) sum += DurationOfWait(absl::Microseconds(500));
  EXPECT_GE(sum, absl::Milliseconds(5));
}

}  // namespace
}  // namespace covey
