// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "client/testing/request_engine_fixture.h"
#include "common/base/random.h"

namespace covey::client {
namespace {

using ::testing::ElementsAre;

class OverloadTest : public RequestEngineTest {
 protected:
  Operation PullAll() {
    return {.table = TableId(3),
            .values = values_,
            .deadline = kStart + absl::Seconds(10),
            .done = [this](absl::Time, const OperationResult& result, Outbox&) {
              results_.push_back(result);
            }};
  }
  // A reply to a pull, with `version` as every value.
  Message Values(const Message& request, uint64_t version, uint64_t generation = 0) {
    Message reply = ReplyTo(request);
    proto::ShardState& state = *reply.envelope.mutable_pull_reply()->mutable_state();
    state.set_version(version);
    state.set_generation(generation);
    const bool first = request.envelope.pull_request().shard() == 0 &&
                       request.envelope.push_request().id().shard() == 0;
    const std::vector<float> values(first ? 4 : 2, static_cast<float>(version));
    reply.frames.push_back(Buffer::CopyOf(
        {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}));
    SetFrameChecksums(reply);
    return reply;
  }
  void Receive(const Message& reply) { engine_.Receive(now_, reply, outbox_); }

  std::vector<float> values_ = std::vector<float>(6);
};

TEST_F(OverloadTest, AsksNoSoonerThanTheServerSaid) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  Answer(sent[0], 1);
  Refuse(sent[1], absl::ResourceExhaustedError("full"), 300);
  EXPECT_EQ(engine_.bytes_in_flight(), 0u) << "what was refused is not on the way";
  EXPECT_EQ(engine_.counters().refusals, 1u);
  EXPECT_TRUE(After(absl::Milliseconds(299)).empty());
  const std::vector<Message> again = After(absl::Milliseconds(160));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].envelope.header().request_id(), sent[1].envelope.header().request_id());
}

TEST_F(OverloadTest, ObeysTheCreditOfEachServerByItself) {
  Start(PullAll());
  std::vector<Message> sent = outbox_.TakeMessages();
  Message reply = Values(sent[0], 1);
  reply.envelope.set_credit_bytes(16);  // One shard at a time, to server-0.
  Receive(reply);
  Receive(Values(sent[1], 1));
  for (int i = 0; i < 3; ++i) Start(PullAll());
  sent = outbox_.TakeMessages();
  EXPECT_EQ(sent.size(), 1u + 3u);
  const auto to_first = std::count_if(sent.begin(), sent.end(), [](const Message& message) {
    return message.to().node == NodeId(kServerA);
  });
  EXPECT_EQ(to_first, 1);
}

TEST_F(OverloadTest, AnOlderVersionThanWasSeenIsAskedForAgain) {
  Start(PullAll());
  std::vector<Message> sent = outbox_.TakeMessages();
  for (const Message& message : sent) Receive(Values(message, 7, 1));
  ASSERT_EQ(results_.size(), 1u);
  // The head was replaced, and the server that was asked does not know it.
  Start(PullAll());
  sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].envelope.pull_request().read().min_version(), 7u);
  Receive(Values(sent[0], 6, 1));
  Receive(Values(sent[1], 8, 1));
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_EQ(engine_.counters().outdated_answers, 1u);
  EXPECT_THAT(values_, ElementsAre(7, 7, 7, 7, 8, 8));
  const std::vector<Message> again = After(absl::Milliseconds(3));
  ASSERT_EQ(again.size(), 1u);
  Receive(Values(again[0], 7, 1));
  EXPECT_EQ(results_.size(), 2u);
}

TEST_F(OverloadTest, ANewGenerationBeginsANewHistory) {
  Start(PullAll());
  for (const Message& message : outbox_.TakeMessages()) Receive(Values(message, 7, 1));
  ShowView(View(2, kServerA, kServerB, {.generation = 2}));
  Start(PullAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].envelope.pull_request().read().min_version(), 0u);
  Receive(Values(sent[0], 9, 1));  // A version of the shard's earlier generation.
  Receive(Values(sent[1], 1, 2));
  EXPECT_EQ(results_.size(), 1u);
  Receive(Values(sent[0], 1, 2));
  EXPECT_EQ(results_.size(), 2u);
  EXPECT_EQ(results_[1].version, Version(1));
}

TEST_F(OverloadTest, GoesToTheNewHeadAtOnceAndBackToTheSameOneSoon) {
  Start(PushAll());
  outbox_.TakeMessages();
  outbox_.TakeRoutes();
  // server-1 has died; its shard's head is server-0 now.
  ShowView(View(2, kServerA, kServerA, {.dead = kServerB}));
  EXPECT_THAT(outbox_.TakeRoutes(),
              ElementsAre(std::pair<Address, std::string>({NodeId(kServerB), 1}, "")))
      << "what waits in the connection to the dead keeps the caller's memory";
  const std::vector<Message> moved = After(absl::ZeroDuration());
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].to(), (Address{NodeId(kServerA), 1}));
  EXPECT_EQ(moved[0].envelope.push_request().id().shard(), 1u);
  // The chain changed but the heads are the same.
  ShowView(View(3, kServerA, kServerA, {.chain_epoch = 3, .dead = kServerB}));
  EXPECT_TRUE(After(absl::Milliseconds(40)).empty());
  EXPECT_EQ(After(absl::Milliseconds(70)).size(), 2u);
}

TEST_F(OverloadTest, ARefusalForAnOldViewIsRetriedWithTheNewOneAtOnce) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  Answer(sent[0], 1);
  // Enough refusals that the next retry would otherwise be far away.
  for (int i = 0; i < 12; ++i) {
    Refuse(sent[1], absl::FailedPreconditionError("it lives elsewhere"));
    ASSERT_EQ(After(absl::Milliseconds(201)).size(), 1u);
  }
  Refuse(sent[1], absl::FailedPreconditionError("it lives elsewhere"));
  ShowView(View(2, kServerA, kServerA));
  ASSERT_EQ(After(absl::ZeroDuration()).size(), 1u);
  // The new head's view is late; the client asks it again within milliseconds.
  Refuse(sent[1], absl::UnavailableError("my view is on its way"));
  EXPECT_EQ(After(absl::Milliseconds(3)).size(), 1u);
}

// A server that needs three seconds per reply gets each request about once, not three times.
TEST_F(OverloadTest, DoesNotRepeatWhatASlowServerHasNotAnsweredYet) {
  for (int i = 0; i < 40; ++i) {
    Start(PullAll());
    const std::vector<Message> sent = outbox_.TakeMessages();
    ASSERT_EQ(sent.size(), 2u);
    size_t repeats = 0;
    for (int tenths = 0; tenths < 30; ++tenths) repeats += After(absl::Milliseconds(100)).size();
    if (i > 25) {
      EXPECT_EQ(repeats, 0u) << i;
    }
    for (const Message& message : sent) Receive(Values(message, 1));
    now_ = kStart;
    ASSERT_EQ(results_.size(), i + 1u);
  }
  // A lost request is still retried, and soon once replies are quick again.
  for (int i = 0; i < 60; ++i) {
    Start(PullAll());
    for (const Message& message : outbox_.TakeMessages()) Receive(Values(message, 1));
  }
  Start(PullAll());
  outbox_.TakeMessages();
  EXPECT_EQ(After(absl::Milliseconds(1200)).size(), 2u);
}

// A server that is frozen or overloaded tenfold already has all the bytes in its queue.
TEST_F(OverloadTest, AsksAfterAPushWithoutItsBytes) {
  Operation push = PushAll();
  push.deadline = kStart + absl::Minutes(1);
  Start(std::move(push));
  std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  size_t repeats = 0;
  size_t repeated_bytes = 0;
  for (int tenths = 0; tenths < 300; ++tenths) {
    for (const Message& message : After(absl::Milliseconds(100))) {
      ++repeats;
      for (const Buffer& frame : message.frames) repeated_bytes += frame.size();
    }
  }
  EXPECT_GE(repeats, 6u);
  EXPECT_EQ(repeated_bytes, 0u);
  EXPECT_EQ(engine_.bytes_in_flight(), 24u) << "they are still on their way";
  // One push was lost: the server reports that, and gets it.
  sent[0].frames.clear();
  Answer(sent[0], 1);
  Refuse(sent[1], absl::UnavailableError("it has not been received yet"));
  const std::vector<Message> again = After(absl::Milliseconds(3));
  ASSERT_EQ(again.size(), 1u);
  ASSERT_EQ(again[0].frames.size(), 1u);
  EXPECT_TRUE(CheckFrameChecksums(again[0]).ok());
  EXPECT_EQ(again[0].frames[0].As<float>()[0], 5.0f);
}

TEST_F(OverloadTest, ANewHeadGetsTheBytesAtOnce) {
  Start(PushAll());
  outbox_.TakeMessages();
  for (const Message& message : After(absl::Milliseconds(1200))) {
    EXPECT_TRUE(message.frames.empty());
  }
  ShowView(View(2, kServerA, kServerA));
  const std::vector<Message> moved = After(absl::ZeroDuration());
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].frames.size(), 1u);
  // Nothing is lost when the chain changes behind the same head.
  ShowView(View(3, kServerA, kServerA, {.chain_epoch = 3}));
  const std::vector<Message> asked = After(absl::Milliseconds(110));
  ASSERT_EQ(asked.size(), 2u);
  for (const Message& message : asked) EXPECT_TRUE(message.frames.empty());
}

// The values, too, are in the server's queue, or wait until they are fresh enough.
TEST_F(OverloadTest, AsksForTheValuesOnlyOnceItsPushIsKnownToBeReceived) {
  Operation operation = PullAll();
  operation.gradient = gradient_;
  Start(std::move(operation));
  std::vector<Message> sent = outbox_.TakeMessages();
  for (Message& message : sent) message.frames.clear();
  const std::vector<Message> asked = After(absl::Milliseconds(1200));
  ASSERT_EQ(asked.size(), 2u);
  for (const Message& message : asked) {
    EXPECT_FALSE(message.envelope.push_request().read().wanted());
    EXPECT_TRUE(message.frames.empty());
  }
  // The first reply arrives after all; the other one was lost.
  Message reply = Values(sent[0], 3);
  proto::PushReply& pushed = *reply.envelope.mutable_push_reply();
  pushed.set_durable(true);
  pushed.set_has_values(true);
  pushed.mutable_state()->set_version(3);
  Receive(reply);
  Answer(asked[0], 3);
  Answer(asked[1], 3);
  std::vector<Message> again = After(absl::Milliseconds(3));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].frames.empty());
  EXPECT_TRUE(again[0].envelope.push_request().read().wanted());
  EXPECT_EQ(again[0].envelope.push_request().id().shard(), 1u);
}

// The first reply said "durable", but its values were damaged in flight.
TEST_F(OverloadTest, AsksForDamagedValuesWithoutTheGradient) {
  Operation operation = PullAll();
  operation.gradient = gradient_;
  Start(std::move(operation));
  const std::vector<Message> sent = outbox_.TakeMessages();
  Message reply = ReplyTo(sent[0]);
  proto::PushReply& pushed = *reply.envelope.mutable_push_reply();
  pushed.set_durable(true);
  pushed.set_has_values(true);
  reply.frames.push_back(Buffer::Allocate(16));
  SetFrameChecksums(reply);
  reply.envelope.set_frame_checksums(0, reply.envelope.frame_checksums(0) + 1);
  Receive(reply);
  const std::vector<Message> again = After(absl::Milliseconds(3));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].frames.empty());
  EXPECT_TRUE(again[0].envelope.push_request().read().wanted());
}

// Whichever bit flips in a frame in flight, in either direction, the result is the same.
TEST_F(OverloadTest, FlippedBitsChangeNothing) {
  Random random(9);
  uint64_t flips = 0;
  for (uint64_t version = 1; version <= 300; ++version) {
    Operation operation = PullAll();
    operation.gradient = gradient_;
    Start(std::move(operation));
    for (int turn = 0; engine_.operations() > 0; ++turn) {
      ASSERT_LT(turn, 1000);
      std::vector<Message> sent = outbox_.TakeMessages();
      for (Message& message : sent) {
        const auto flip = [&](Message& any) {
          if (any.frames.empty() || !random.Chance(0.5)) return;
          ++flips;
          Buffer damaged = Buffer::CopyOf(any.frames[0].bytes());
          damaged.MutableData()[random.Below(damaged.size())] ^=
              static_cast<uint8_t>(1 << random.Below(8));
          any.frames[0] = damaged;
        };
        // The server checks the push, and answers with values.
        flip(message);
        const absl::Status intact = CheckFrameChecksums(message);
        Message reply = ReplyTo(message);
        proto::PushReply& pushed = *reply.envelope.mutable_push_reply();
        pushed.set_durable(true);
        pushed.mutable_state()->set_version(version);
        if (intact.ok()) {
          const bool first = message.envelope.push_request().id().shard() == 0;
          if (!message.frames.empty()) {  // Otherwise the push was received, and its reply damaged.
            ASSERT_EQ(message.frames[0].As<float>()[0], first ? 1.0f : 5.0f);
          }
          const std::vector<float> values(first ? 4 : 2, static_cast<float>(version));
          reply.frames.push_back(Buffer::CopyOf(
              {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}));
          pushed.set_has_values(true);
          SetFrameChecksums(reply);
          flip(reply);
        } else {
          SetStatus(intact, reply);
        }
        message.frames.clear();
        Receive(reply);
      }
      sent.clear();
      engine_.Wake(now_ += absl::Milliseconds(201), outbox_);
      now_ = kStart;  // This test is not about deadlines.
    }
    ASSERT_EQ(results_.size(), version);
    ASSERT_TRUE(results_.back().status.ok()) << results_.back().status;
    for (const float value : values_) ASSERT_EQ(value, static_cast<float>(version));
  }
  EXPECT_GT(flips, 500u);
  EXPECT_EQ(engine_.counters().damaged, flips);
}

}  // namespace
}  // namespace covey::client
