// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/send_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace covey::client {
namespace {

using State = ShardRequest::State;

constexpr Address kA{NodeId(10), 1};
constexpr Address kB{NodeId(11), 1};
constexpr absl::Time kNow = absl::UnixEpoch();

class SendQueueTest : public ::testing::Test {
 protected:
  static ShardRequest Request(uint64_t id, const Address& head, size_t bytes = 10) {
    ShardRequest request;
    request.request_id = id;
    request.head = head;
    request.wire_bytes = bytes;
    return request;
  }
  // Sends every request that may leave; returns their ids in order.
  std::vector<uint64_t> SendAll(uint64_t held_back = 0) {
    std::vector<uint64_t> ids;
    const auto is_held = [&](const ShardRequest& request) {
      return request.request_id == held_back;
    };
    while (ShardRequest* next = queue_.Next(is_held)) {
      queue_.Send(kNow, *next);
      ids.push_back(next->request_id);
    }
    return ids;
  }

  SendQueue queue_{{.budget = 100, .seed = 1}};
};

TEST_F(SendQueueTest, SendsTheOldestFirstWhicheverServerItIsFor) {
  ShardRequest first = Request(1, kB), second = Request(2, kA), third = Request(3, kB);
  for (ShardRequest* request : {&third, &second, &first}) queue_.Enqueue(*request);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(first.state(), State::kInFlight);
  EXPECT_EQ(queue_.bytes_in_flight(), 30u);
}

TEST_F(SendQueueTest, ARequestThatIsHeldBackDoesNotHoldUpLaterOnes) {
  ShardRequest first = Request(1, kA), second = Request(2, kA);
  queue_.Enqueue(first);
  queue_.Enqueue(second);
  EXPECT_EQ(SendAll(/*held_back=*/1), (std::vector<uint64_t>{2}));
  EXPECT_EQ(first.state(), State::kQueued);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1}));
}

TEST_F(SendQueueTest, StopsAtTheBudgetAndGoesOnWhenBytesReturn) {
  ShardRequest first = Request(1, kA, 60), second = Request(2, kB, 60), third = Request(3, kB, 10);
  for (ShardRequest* request : {&first, &second, &third}) queue_.Enqueue(*request);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1})) << "the third must not overtake the second";
  EXPECT_FALSE(queue_.HasRoom(kB, Request(4, kA, 60)));
  EXPECT_TRUE(queue_.HasRoom(kB, Request(4, kA, 40)));
  queue_.Withdraw(first, State::kOver);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{2, 3}));
}

TEST_F(SendQueueTest, ARequestThatIsOlderThanAllInFlightGoesWithoutRoom) {
  ShardRequest first = Request(1, kA, 60), second = Request(2, kB, 60), third = Request(3, kA, 90);
  queue_.Enqueue(third);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{3}));
  queue_.Enqueue(first);
  queue_.Enqueue(second);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1})) << "window and budget are full with the third";
  EXPECT_TRUE(queue_.HasRoom(kA, Request(0, kA, 90)));
  EXPECT_FALSE(queue_.HasRoom(kA, Request(2, kA, 90)));
  queue_.Withdraw(first, State::kOver);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{2}));
  EXPECT_EQ(queue_.bytes_in_flight(), 150u);
  queue_.Withdraw(second, State::kOver);
  queue_.Withdraw(third, State::kOver);
  EXPECT_EQ(queue_.bytes_in_flight(), 0u);
}

TEST_F(SendQueueTest, APushThatItsServerHasConfirmedDoesNotCount) {
  ShardRequest held = Request(1, kA, 90), later = Request(2, kA, 90), last = Request(3, kB, 20);
  for (ShardRequest* request : {&held, &later, &last}) queue_.Enqueue(*request);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1}));
  queue_.Withdraw(held, State::kBackingOff);
  held.query_only = true;
  queue_.Enqueue(held);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(queue_.bytes_in_flight(), 90u);
  // As when the query is sent.
  held.query_only = true;
  queue_.Withdraw(held, State::kOver);
  EXPECT_EQ(queue_.bytes_in_flight(), 90u);
  queue_.Withdraw(later, State::kOver);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{3}));
  EXPECT_EQ(queue_.bytes_in_flight(), 20u);
}

TEST_F(SendQueueTest, AQueryNeedsNoRoom) {
  ShardRequest large = Request(1, kA, 150), confirmed = Request(2, kA, 60);
  queue_.Enqueue(large);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{1})) << "more than window and budget";
  confirmed.query_only = true;
  EXPECT_TRUE(queue_.HasRoom(kA, confirmed));
  queue_.Enqueue(confirmed);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{2}));
}

TEST_F(SendQueueTest, WithdrawsARequestWhereverItIs) {
  ShardRequest queued = Request(1, kA), in_flight = Request(2, kB), idle = Request(3, kA);
  queue_.Enqueue(in_flight);
  SendAll();
  queue_.Enqueue(queued);
  in_flight.query_only = true;
  for (ShardRequest* request : {&queued, &in_flight, &idle}) {
    queue_.Withdraw(*request, State::kBackingOff);
    EXPECT_EQ(request->state(), State::kBackingOff);
  }
  EXPECT_FALSE(in_flight.query_only) << "the next head gets the bytes";
  EXPECT_EQ(queue_.bytes_in_flight(), 0u);
  EXPECT_TRUE(SendAll().empty());
}

TEST_F(SendQueueTest, APushThatIsSentAgainCountsLikeAnyRequest) {
  ShardRequest push = Request(1, kA, 90);
  push.MoveTo(State::kStranded);
  queue_.Send(kNow, push);
  EXPECT_EQ(push.state(), State::kResending);
  EXPECT_EQ(queue_.bytes_in_flight(), 90u);
  ShardRequest later = Request(2, kB, 20);
  queue_.Enqueue(later);
  EXPECT_TRUE(SendAll().empty());
  queue_.Withdraw(push, State::kUnconfirmed);
  EXPECT_EQ(SendAll(), (std::vector<uint64_t>{2}));
}

TEST_F(SendQueueTest, PatienceDoublesWithTriesUpToTheLongest) {
  for (const auto& [tries, seconds] : {std::pair(0, 1), {1, 2}, {2, 4}, {3, 8}, {9, 8}}) {
    const absl::Duration patience = queue_.ReplyPatience(kA, tries);
    EXPECT_GE(patience, absl::Seconds(seconds));
    EXPECT_LE(patience, 1.1 * absl::Seconds(seconds));
  }
  EXPECT_EQ(queue_.ResendPatience(kA, 3), absl::Seconds(8));
}

TEST_F(SendQueueTest, ARefusedRequestStaysAwayAsLongAsTheServerAsked) {
  for (int refusals = 0; refusals < 12; ++refusals) {
    const absl::Duration usual = queue_.RefusalDelay(refusals, absl::ZeroDuration());
    EXPECT_GE(usual, absl::Milliseconds(1));
    EXPECT_LE(usual, absl::Milliseconds(200));
    const absl::Duration asked = queue_.RefusalDelay(refusals, absl::Milliseconds(300));
    EXPECT_GE(asked, absl::Milliseconds(300));
    EXPECT_LE(asked, absl::Milliseconds(450));
  }
  EXPECT_LE(queue_.RefusalDelay(0, absl::Hours(1)), absl::Seconds(15)) << "whatever a server says";
}

TEST_F(SendQueueTest, ForgetsOnlyServersThatAreGoneAndIdle) {
  ShardRequest slow = Request(1, kA);
  queue_.Enqueue(slow);
  SendAll();
  slow.tries = 1;
  queue_.OnReply(kNow + absl::Seconds(3), slow, 0);
  queue_.ForgetIdle([](NodeId) { return true; });
  EXPECT_EQ(queue_.ResendPatience(kA, 0), absl::Seconds(6)) << "its request is in flight";
  queue_.Withdraw(slow, State::kOver);
  queue_.ForgetIdle([](NodeId) { return false; });
  EXPECT_EQ(queue_.ResendPatience(kA, 0), absl::Seconds(6));
  queue_.ForgetIdle([](NodeId) { return true; });
  EXPECT_EQ(queue_.ResendPatience(kA, 0), absl::Seconds(1));
}

}  // namespace
}  // namespace covey::client
