// SPDX-License-Identifier: Apache-2.0
#include "server/shard/initial_values.h"

#include <limits>
#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The table of the job waits for values of this node, under this epoch.
void WaitFor(NodeId giver, uint64_t epoch, TestJob& job) {
  job.spec().mutable_initializer()->set_kind(proto::Initializer::GIVEN);
  proto::Initialization& waiting = *job.view.mutable_tables(0)->mutable_initialization();
  waiting.set_node(giver.value());
  waiting.set_epoch(epoch);
  job.view.set_epoch(std::max(job.view.epoch() + 1, epoch));
}

void EndWait(TestJob& job) {
  job.view.mutable_tables(0)->clear_initialization();
  job.view.set_epoch(job.view.epoch() + 1);
}

Message Under(uint64_t epoch, Message push) {
  push.envelope.mutable_push_request()->set_initialization_epoch(epoch);
  return push;
}

class InitialValuesTest : public ::testing::Test {
 protected:
  InitialValuesTest() { WaitFor(kTestClient, 7, job_); }

  absl::Status Answer(const Message& request) { return StatusOf(driver_.Ask(request)); }
  Message Push(const std::vector<float>& values) { return driver_.ClientPush(++pushes_, values); }
  void Publish() { driver_.AdoptView(job_); }

  uint64_t pushes_ = 0;
  TestJob job_{kAsync, 1};
  ShardDriver driver_{job_};
};

TEST_F(InitialValuesTest, ATableIsServedOnceItHasThem) {
  Publish();
  const absl::Status pull = Answer(driver_.Pull());
  EXPECT_EQ(pull.code(), Code::kUnavailable);
  EXPECT_THAT(pull.message(), HasSubstr("waits for its initial values, which client-0 gives"));
  EXPECT_EQ(Answer(Push({1, 1, 1, 1})).code(), Code::kUnavailable);

  const Message given = driver_.Ask(Under(7, Push({1, 2, 3, 4})));
  ASSERT_TRUE(StatusOf(given).ok()) << StatusOf(given);
  EXPECT_TRUE(given.envelope.push_reply().durable());
  EXPECT_EQ(given.envelope.push_reply().state().version(), 0u);
  EXPECT_EQ(given.envelope.push_reply().state().samples(), 0u);
  EXPECT_TRUE(Answer(Under(7, Push({4, 3, 2, 1}))).ok()) << "a repeat, whatever it holds";
  EXPECT_EQ(Answer(driver_.Pull()).code(), Code::kUnavailable) << "other shards may lack theirs";

  EndWait(job_);
  Publish();
  EXPECT_THAT(driver_.Values(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Answer(Under(7, Push({9, 9, 9, 9}))).code(), Code::kAborted);
  EXPECT_TRUE(Answer(Push({1, 1, 1, 1})).ok());
  EXPECT_THAT(driver_.Values(), ElementsAre(0, 1, 2, 3));
}

TEST_F(InitialValuesTest, ThoseOfANewEpochReplaceThem) {
  Publish();
  ASSERT_TRUE(Answer(Under(7, Push({1, 2, 3, 4}))).ok());
  WaitFor(kTestClient, 9, job_);
  Publish();
  EXPECT_EQ(Answer(Under(7, Push({1, 2, 3, 4}))).code(), Code::kAborted) << "an earlier call's";
  ASSERT_TRUE(Answer(Under(9, Push({4, 3, 2, 1}))).ok());
  EndWait(job_);
  Publish();
  EXPECT_THAT(driver_.Values(), ElementsAre(4, 3, 2, 1));
}

TEST_F(InitialValuesTest, NobodyGivesThemBeforeANodeIsNamed) {
  WaitFor(NodeId(), 9, job_);
  Publish();
  Message stranger = Under(9, Push({1, 1, 1, 1}));
  stranger.envelope.mutable_header()->set_node(0);
  stranger.envelope.mutable_push_request()->mutable_id()->set_producer(0);
  EXPECT_EQ(Answer(stranger).code(), Code::kAborted);
  EndWait(job_);
  Publish();
  EXPECT_THAT(driver_.Values(), ElementsAre(0, 0, 0, 0));
}

TEST_F(InitialValuesTest, OnlyTheNamedNodeGivesThemAndUnderItsEpoch) {
  Publish();
  EXPECT_EQ(Answer(Under(6, Push({1, 1, 1, 1}))).code(), Code::kAborted) << "of an earlier epoch";
  const absl::Status later = Answer(Under(8, Push({1, 1, 1, 1})));
  EXPECT_EQ(later.code(), Code::kUnavailable) << "this server's view is older";
  Message stranger = Under(7, Push({1, 1, 1, 1}));
  stranger.envelope.mutable_header()->set_node(11);
  stranger.envelope.mutable_push_request()->mutable_id()->set_producer(11);
  const absl::Status refused = Answer(stranger);
  EXPECT_EQ(refused.code(), Code::kAborted);
  EXPECT_THAT(refused.message(), HasSubstr("given by client-0 since epoch 7, not by worker-0"));
}

TEST_F(InitialValuesTest, RefusesValuesThatDoNotFit) {
  Publish();
  EXPECT_EQ(Answer(Under(7, Push({1, 2, 3}))).code(), Code::kInvalidArgument);
  const absl::Status infinite = Answer(Under(7, Push({1, 2, kNan, 4})));
  EXPECT_EQ(infinite.code(), Code::kInvalidArgument);
  EXPECT_THAT(infinite.message(), HasSubstr("element 2 of the table is nan"));
  Message halves = Under(7, Push({1, 2}));
  halves.envelope.mutable_push_request()->set_format(proto::WIRE_FLOAT16);
  EXPECT_THAT(Answer(halves).message(), HasSubstr("float32"));
  Message query = Under(7, Push({1, 2, 3, 4}));
  query.frames.clear();
  EXPECT_EQ(Answer(query).code(), Code::kUnavailable);
  Message damaged = WithChecksums(Under(7, Push({1, 2, 3, 4})));
  damaged.envelope.set_frame_checksums(0, damaged.envelope.frame_checksums(0) + 1);
  Outbox outbox;
  driver_.actor().Receive(driver_.now(), damaged, outbox);
  EXPECT_EQ(StatusOf(outbox.TakeMessages().at(0)).code(), Code::kUnavailable);

  EndWait(job_);
  Publish();
  EXPECT_THAT(driver_.Values(), ElementsAre(0, 0, 0, 0)) << "nothing was taken";
}

// A view that no scheduler makes must not end the server.
TEST_F(InitialValuesTest, AShardWithUpdatesTakesNone) {
  EndWait(job_);
  Publish();
  ASSERT_TRUE(Answer(Push({1, 1, 1, 1})).ok());
  WaitFor(kTestClient, 9, job_);
  Publish();
  EXPECT_EQ(Answer(Under(9, Push({5, 5, 5, 5}))).code(), Code::kAborted);
}

// A chain of two servers, whose records are lost, and a table that waits for values of epoch 30.
class SlowChainTest : public ::testing::Test {
 protected:
  SlowChainTest() {
    WaitFor(kTestClient, 30, chain_.job);
    chain_.PublishToAll();
    chain_.lose = [](const Message& message) { return message.envelope.has_replicate_request(); };
  }
  uint64_t records() { return chain_.replica(0).content()->index(); }

  ShardDriver requests_{TestJob(kAsync, 1)};
  ChainDriver chain_{kAsync, 0, 2, 2};
};

TEST_F(SlowChainTest, AQueryWaitsForTheReplicasAndARepeatAddsNoRecord) {
  const Message push = WithChecksums(Under(30, requests_.ClientPush(1, {1, 2, 3, 4})));
  chain_.Deliver(0, push);
  Message query = push;
  query.frames.clear();
  chain_.Deliver(0, WithChecksums(query));
  chain_.Settle();
  EXPECT_TRUE(chain_.Answers().empty()) << "a refusal would make the sender send all bytes again";
  chain_.Deliver(0, push);
  EXPECT_EQ(records(), 1u);
  chain_.lose = [](const Message&) { return false; };
  chain_.Pass(absl::Milliseconds(200));
  const std::vector<Message> answers = chain_.Answers();
  ASSERT_EQ(answers.size(), 3u);
  for (const Message& answer : answers) {
    EXPECT_TRUE(StatusOf(answer).ok()) << StatusOf(answer);
    EXPECT_TRUE(answer.envelope.push_reply().durable());
  }
  EXPECT_TRUE(answers[1].envelope.push_reply().duplicate());
}

TEST_F(SlowChainTest, ARepeatThatFindsNoPlaceForItsReplyAddsNoRecord) {
  for (uint64_t i = 0; i < kParkedPerShardMax; ++i) {
    chain_.Deliver(0, Under(30, requests_.ClientPush(1, {1, 2, 3, 4})));
  }
  chain_.Settle();
  EXPECT_TRUE(chain_.Answers().empty());
  chain_.Deliver(0, Under(30, requests_.ClientPush(1, {1, 2, 3, 4})));
  const std::vector<Message> answers = chain_.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(StatusOf(answers[0]).code(), Code::kResourceExhausted);
  EXPECT_EQ(records(), 1u);
}

TEST_F(SlowChainTest, TakesNoMoreThanTheChainHasRoomFor) {
  for (uint64_t i = 0; i <= kRecordsInFlightPerShard; ++i) {
    WaitFor(kTestClient, 31 + i, chain_.job);
    chain_.PublishToAll();
    chain_.Answers();
    chain_.Deliver(0, Under(31 + i, requests_.ClientPush(1, {1, 2, 3, 4})));
  }
  EXPECT_EQ(records(), kRecordsInFlightPerShard);
  const std::vector<Message> answers = chain_.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(StatusOf(answers[0]).code(), Code::kResourceExhausted);
}

TEST_F(InitialValuesTest, AllReplicasHoldThemBeforeTheReply) {
  ChainDriver chain(kAsync, 0, 3, 3);
  WaitFor(kTestClient, 30, chain.job);
  chain.PublishToAll();
  chain.lose = [](const Message& message) { return message.envelope.has_replicate_request(); };
  chain.Deliver(0, WithChecksums(Under(30, Push({1, 2, 3, 4}))));
  chain.Settle();
  EXPECT_TRUE(chain.Answers().empty());
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Milliseconds(200));
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].envelope.push_reply().durable());
  for (uint32_t server = 0; server < 3; ++server) {
    EXPECT_EQ(chain.Digest(server), chain.Digest(0));
    const auto values = chain.replica(server).content()->Values();
    EXPECT_EQ(values.As<float>()[3], 4);
  }
}

}  // namespace
}  // namespace covey::server
