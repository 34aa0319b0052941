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

// With the state of an optimizer.
Message WithState(Message push, const std::vector<std::vector<float>>& slots, uint64_t updates,
                  uint64_t samples) {
  proto::InitialState& state = *push.envelope.mutable_push_request()->mutable_initial_state();
  state.set_updates(updates);
  state.set_samples(samples);
  for (const std::vector<float>& slot : slots) push.frames.push_back(ShardDriver::Floats(slot));
  return push;
}

Message WithSlots(Message pull) {
  pull.envelope.mutable_pull_request()->set_with_slots(true);
  return pull;
}

// Values and slots.
std::vector<std::vector<float>> ArraysIn(const Message& reply) {
  std::vector<std::vector<float>> arrays;
  for (const Buffer& frame : reply.frames) {
    const std::span<const float> array = frame.As<float>();
    arrays.emplace_back(array.begin(), array.end());
  }
  return arrays;
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

// Under Adam, which keeps two slots.
class InitialStateTest : public ::testing::Test {
 protected:
  InitialStateTest() { job_.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM); }

  Message Given(uint64_t epoch, ShardDriver& driver) {
    return WithState(Under(epoch, driver.ClientPush(1, {1, 2, 3, 4})), {{1, 1, 1, 1}, {2, 2, 2, 2}},
                     3, 15);
  }

  TestJob job_{kAsync, 1};
};

TEST_F(InitialStateTest, UpdatesGoOnFromIt) {
  job_.spec().mutable_learning_rate()->set_warmup_samples(40);
  ShardDriver trained(job_);
  for (uint64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(StatusOf(trained.Ask(trained.ClientPush(step, {1, 2, 3, 4}, 5))).ok());
  }
  const std::vector<std::vector<float>> arrays = ArraysIn(trained.Ask(WithSlots(trained.Pull())));
  ASSERT_EQ(arrays.size(), 3u);

  WaitFor(kTestClient, 7, job_);
  ShardDriver driver(job_);
  const Message given = driver.Ask(
      Under(7, WithState(driver.ClientPush(1, arrays[0]), {arrays[1], arrays[2]}, 3, 15)));
  ASSERT_TRUE(StatusOf(given).ok()) << StatusOf(given);
  EXPECT_EQ(given.envelope.push_reply().state().version(), 0u) << "it may still be replaced";
  EndWait(job_);
  driver.AdoptView(job_);
  const Message shown = driver.Ask(WithSlots(driver.Pull()));
  EXPECT_EQ(ArraysIn(shown), arrays);
  EXPECT_EQ(shown.envelope.pull_reply().state().version(), 3u);
  EXPECT_EQ(shown.envelope.pull_reply().samples(), 15u);

  for (ShardDriver* each : {&trained, &driver}) {
    const Message pushed = each->Ask(each->ClientPush(4, {4, 3, 2, 1}, 5));
    EXPECT_EQ(pushed.envelope.push_reply().applied_version(), 4u) << StatusOf(pushed);
  }
  EXPECT_EQ(ArraysIn(driver.Ask(WithSlots(driver.Pull()))),
            ArraysIn(trained.Ask(WithSlots(trained.Pull()))));
}

TEST_F(InitialStateTest, ThatOfAnEarlierEpochGoesWithItsValues) {
  WaitFor(kTestClient, 7, job_);
  ShardDriver driver(job_);
  ASSERT_TRUE(StatusOf(driver.Ask(Given(7, driver))).ok());
  WaitFor(kTestClient, 9, job_);
  driver.AdoptView(job_);
  const Message again = driver.Ask(Under(9, driver.ClientPush(1, {4, 3, 2, 1})));
  ASSERT_TRUE(StatusOf(again).ok()) << StatusOf(again);
  EndWait(job_);
  driver.AdoptView(job_);
  const Message shown = driver.Ask(WithSlots(driver.Pull()));
  EXPECT_THAT(ArraysIn(shown), ElementsAre(ElementsAre(4, 3, 2, 1), ElementsAre(0, 0, 0, 0),
                                           ElementsAre(0, 0, 0, 0)));
  EXPECT_EQ(shown.envelope.pull_reply().state().version(), 0u);
  EXPECT_EQ(shown.envelope.pull_reply().samples(), 0u);
}

TEST_F(InitialStateTest, RefusesAStateThatDoesNotFit) {
  WaitFor(kTestClient, 7, job_);
  ShardDriver driver(job_);
  const auto refused = [&](const Message& push) {
    const absl::Status status = StatusOf(driver.Ask(push));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const Message values = Under(7, driver.ClientPush(1, {1, 2, 3, 4}));
  const std::vector<float> ones = {1, 1, 1, 1};
  EXPECT_THAT(refused(WithState(values, {ones}, 3, 15)),
              HasSubstr("table=weights shard=0: the table's optimizer keeps 2 slots, and the "
                        "initial values came with 1"));
  EXPECT_THAT(refused(WithState(values, {ones, ones, ones}, 3, 15)), HasSubstr("came with 3"));
  EXPECT_THAT(refused(WithState(values, {ones, {1, 1, 1}}, 3, 15)),
              HasSubstr("push 3 frames of the shard's size"));
  EXPECT_THAT(refused(WithState(values, {ones, {1, kNan, 1, 1}}, 3, 15)),
              HasSubstr("optimizer slot 2 of element 1 of the table is nan"));
  EXPECT_THAT(refused(WithState(values, {ones, ones}, kInitialUpdatesMax + 1, 15)),
              HasSubstr("updates"));
  EXPECT_THAT(refused(WithState(values, {ones, ones}, 3, kInitialSamplesMax + 1)),
              HasSubstr("samples"));
  Message slots = values;
  slots.frames.push_back(ShardDriver::Floats(ones));
  EXPECT_THAT(refused(slots), HasSubstr("push one frame")) << "they came without their counts";
  Message query = Given(7, driver);
  query.frames.clear();
  EXPECT_EQ(StatusOf(driver.Ask(query)).code(), Code::kUnavailable);

  EndWait(job_);
  driver.AdoptView(job_);
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0)) << "nothing was taken";
}

TEST_F(InitialStateTest, AllReplicasTakeIt) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.job.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  WaitFor(kTestClient, 30, chain.job);
  chain.PublishToAll();
  ShardDriver requests(job_);
  chain.Deliver(0, WithChecksums(Given(30, requests)));
  chain.Settle();
  EXPECT_TRUE(chain.Answers().at(0).envelope.push_reply().durable());
  const auto slot_of = [&](uint32_t server) {
    return chain.replica(server).content()->Slot(1).As<float>()[3];
  };
  for (uint32_t server = 0; server < 3; ++server) {
    EXPECT_EQ(chain.Digest(server), chain.Digest(0));
    EXPECT_EQ(chain.replica(server).content()->version(), Version(3));
    EXPECT_EQ(chain.replica(server).content()->samples(), 15u);
    EXPECT_EQ(slot_of(server), 2);
  }

  // The next head, which has taken none itself, takes those of another call.
  chain.Kill(0);
  chain.SetChain({{1, false}, {2, false}});
  WaitFor(kTestClient, 40, chain.job);
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(500));
  chain.Answers();
  chain.Deliver(1, WithChecksums(Under(40, requests.ClientPush(1, {4, 3, 2, 1}))));
  chain.Pass(absl::Milliseconds(500));
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(StatusOf(answers[0]).ok()) << StatusOf(answers[0]);
  EXPECT_EQ(chain.Digest(1), chain.Digest(2));
  EXPECT_EQ(chain.replica(2).content()->version(), Version());
  EXPECT_EQ(slot_of(2), 0);
}

TEST_F(InitialValuesTest, NobodyGivesThemBeforeANodeIsNamed) {
  WaitFor(NodeId(), 9, job_);
  Publish();
  Message stranger = Under(9, Push({1, 1, 1, 1}));
  SetSender(0, stranger);
  proto::PushId& id = *stranger.envelope.mutable_push_request()->mutable_id();
  id.set_producer(0);
  id.set_producer_incarnation(IncarnationOf(0));
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
  SetSender(11, stranger);
  proto::PushId& id = *stranger.envelope.mutable_push_request()->mutable_id();
  id.set_producer(11);
  id.set_producer_incarnation(IncarnationOf(11));
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
