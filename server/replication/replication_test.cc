// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <vector>

#include "common/net/testing/frame_lender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kBuffered2{.kind = Contract::Kind::kBuffered, .buffer = 2};
constexpr Contract kBuffered3{.kind = Contract::Kind::kBuffered, .buffer = 3};

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }

bool IsRecord(const Message& message) { return message.envelope.has_replicate_request(); }
bool IsReply(const Message& message) { return message.envelope.has_replicate_reply(); }

// Makes requests; its own loop is not part of the test.
class Replication : public ::testing::Test {
 protected:
  Message Push(uint64_t sequence, float value, uint64_t samples = 1) {
    return requests_.ClientPush(sequence, {value, value, value, value}, samples);
  }
  Message GroupPush(uint32_t group, uint64_t step, float value) {
    return requests_.GroupPush(group, step, {value, value, value, value});
  }
  Message Pull() { return requests_.Pull(); }
  // The query by which a client flushes the push.
  static Message Flushed(Message push) {
    push.frames.clear();
    push.envelope.mutable_push_request()->set_flush(true);
    return push;
  }
  std::vector<float> Values(ChainDriver& chain, uint32_t server) {
    return ShardDriver::ValuesIn(chain.Ask(server, Pull()));
  }

  ShardDriver requests_{TestJob(kAsync, 2)};
};

TEST_F(Replication, AnAnswerLeavesOnceTheWholeChainHoldsWhatItShows) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  chain.Deliver(0, ShardDriver::WithValues(Push(1, 1), 0));
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.Settle();
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(Pushed(answers[0]).durable());
  EXPECT_EQ(Pushed(answers[0]).applied_version(), 1u);
  EXPECT_THAT(ShardDriver::ValuesIn(answers[0]), ElementsAre(-1, -1, -1, -1));
  for (uint32_t server = 0; server < 3; ++server) {
    EXPECT_EQ(chain.replica(server).content()->version(), Version(1));
    EXPECT_EQ(chain.Digest(server), chain.Digest(0));
    EXPECT_EQ(chain.replica(server).kept_bytes(), 0u);
  }
}

// It cannot know that the chain goes on without it. Its clocks, its version and the time of its
// last durable update stand still, and bounds are about these.
TEST_F(Replication, TellsHowFarTheChainLagsAndHowLongItTakes) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) chain.Deliver(0, Push(sequence, 1));
  EXPECT_EQ(chain.actor(0).replication_lag(), 3u);
  EXPECT_EQ(chain.actor(1).replication_lag(), 0u);
  chain.now += absl::Milliseconds(20);
  chain.Settle();
  EXPECT_EQ(chain.actor(0).replication_lag(), 0u);
  EXPECT_EQ(chain.actor(1).replication_lag(), 0u) << "nobody is behind the tail";
  // Of three records that were in flight together, one was timed.
  const DurationHistogram& times = chain.actor(0).counters().replication;
  EXPECT_THAT(times.counts(), ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_EQ(times.sum(), absl::Milliseconds(20));
  EXPECT_EQ(chain.actor(1).counters().replication.sum(), absl::ZeroDuration());
}

TEST_F(Replication, AHeadThatIsCutOffAnswersNoReadBeyondItsBound) {
  ChainDriver chain({.kind = Contract::Kind::kSsp, .staleness = 0}, 2, 2, 2);
  chain.PublishToAll();
  EXPECT_EQ(CodeOf(chain.Ask(0, GroupPush(1, 1, 1))), Code::kOk);
  EXPECT_EQ(CodeOf(chain.Ask(0, GroupPush(2, 1, 1))), Code::kOk);
  chain.lose = [](const Message&) { return true; };
  chain.Pass(absl::Seconds(2));

  using Bound = std::function<void(proto::ReadBound&)>;
  const auto read = [&](const Bound& set) {
    Message pull = Pull();
    set(*pull.envelope.mutable_pull_request()->mutable_read());
    chain.Deliver(0, pull);
    chain.Pass(absl::Seconds(2));
    const std::vector<Message> answers = chain.Answers();
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? Code::kUnknown : CodeOf(answers[0]);
  };
  const Bound by_step = [](proto::ReadBound& bound) { bound.set_step(2); };
  const Bound by_age = [](proto::ReadBound& bound) { bound.set_max_age_ms(1000); };
  const Bound by_version = [](proto::ReadBound& bound) { bound.set_min_version(3); };
  for (const Bound& bound : {by_step, by_age, by_version}) {
    EXPECT_EQ(read(bound), Code::kDeadlineExceeded);
  }
  EXPECT_EQ(read([](proto::ReadBound& bound) { bound.set_step(1); }), Code::kOk);

  // Pushes from its side of the network make it no fresher.
  chain.Deliver(0, GroupPush(1, 2, 1));
  chain.Deliver(0, GroupPush(2, 2, 1));
  chain.Pass(absl::Seconds(2));
  chain.Answers();
  for (const Bound& bound : {by_step, by_age, by_version}) {
    EXPECT_EQ(read(bound), Code::kDeadlineExceeded);
  }
}

// Bytes of records along a chain of three, while each of `groups` pushes 4,096 elements five times.
size_t RecordBytes(const Contract& contract, uint32_t groups) {
  constexpr uint64_t kElements = 4096;
  ChainDriver chain(contract, groups, 3, 3, kElements);
  chain.PublishToAll();
  ShardDriver maker(TestJob(contract, groups, kElements));
  for (uint64_t step = 1; step <= 5; ++step) {
    for (uint32_t group = 1; group <= groups; ++group) {
      chain.Deliver(0, maker.GroupPush(group, step, std::vector<float>(kElements, 1)));
      chain.Settle();
    }
  }
  EXPECT_EQ(chain.replica(0).content()->samples(), 5 * groups);
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
  size_t bytes = 0;
  for (const Message& message : chain.sent) {
    if (!IsRecord(message)) continue;
    bytes += message.envelope.ByteSizeLong();
    for (const Buffer& frame : message.frames) bytes += frame.size();
  }
  return bytes;
}

TEST_F(Replication, AnUpdateTravelsOnceHoweverManyGroupsHavePushedToIt) {
  for (const uint32_t groups : {2u, 4u, 8u}) {
    const size_t each = RecordBytes(kAsync, groups);
    EXPECT_GE(each, 2 * 5 * groups * 4096 * sizeof(float)) << "two links, and each push a record";
    for (const Contract& contract :
         {kBsp, Contract{.kind = Contract::Kind::kBuffered, .buffer = groups}}) {
      EXPECT_LE(RecordBytes(contract, groups) * groups, 1.2 * static_cast<double>(each))
          << ContractName(contract) << " with " << groups << " groups";
    }
  }
}

TEST_F(Replication, NobodySeesWhatIsNotDurable) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  EXPECT_EQ(CodeOf(chain.Ask(0, Push(1, 1))), Code::kOk);
  chain.lose = IsRecord;
  chain.Deliver(0, Push(2, 1));
  chain.Deliver(0, Pull());
  chain.Deliver(0, Push(2, 1));  // a duplicate is no more durable than the first push
  chain.Settle();
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Milliseconds(100));
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1].envelope.pull_reply().state().version(), 2u);
  EXPECT_TRUE(Pushed(answers[2]).duplicate());
  EXPECT_TRUE(Pushed(answers[2]).durable());
}

TEST_F(Replication, AnswersShowTheVersionThatMetTheDemand) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.lose = IsReply;
  chain.Deliver(0, Pull());
  chain.Deliver(0, Push(1, 1));
  chain.Deliver(0, Pull());
  chain.Deliver(0, Push(2, 1));
  chain.Settle();
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Milliseconds(200));
  std::vector<uint64_t> versions;
  std::vector<float> values;
  for (const Message& answer : chain.Answers()) {
    if (!answer.envelope.has_pull_reply()) continue;
    versions.push_back(answer.envelope.pull_reply().state().version());
    values.push_back(ShardDriver::ValuesIn(answer)[0]);
  }
  EXPECT_THAT(versions, ElementsAre(0, 1));
  EXPECT_THAT(values, ElementsAre(0, -1));
}

TEST_F(Replication, AFlushedPushDoesNotWaitForAFullBuffer) {
  ChainDriver chain(kBuffered3, 3, 2, 2);
  chain.PublishToAll();
  const Message first = GroupPush(1, 1, 2);
  EXPECT_FALSE(Pushed(chain.Ask(0, first)).durable());
  EXPECT_FALSE(Pushed(chain.Ask(0, GroupPush(2, 1, 4))).durable());
  chain.Deliver(0, Flushed(first));
  EXPECT_THAT(chain.Answers(), IsEmpty()) << "the chain does not hold it yet";
  chain.Settle();
  // Two answers for the push that is flushed, and one for the other push in the buffer.
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 3u);
  for (const Message& answer : answers) {
    EXPECT_TRUE(Pushed(answer).durable());
    EXPECT_EQ(Pushed(answer).applied_version(), 1u);
  }
  EXPECT_THAT(Values(chain, 0), ElementsAre(-3, -3, -3, -3)) << "the mean of both";
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));

  // A repeat finds the push applied; it does not touch the pushes that wait by then.
  EXPECT_FALSE(Pushed(chain.Ask(0, GroupPush(2, 2, 4))).durable());
  const Message repeat = chain.Ask(0, Flushed(first));
  EXPECT_TRUE(Pushed(repeat).duplicate());
  EXPECT_EQ(Pushed(repeat).applied_version(), 1u);
  EXPECT_EQ(chain.replica(0).content()->version(), Version(1));

  // Nor is it applied twice by the next head.
  chain.Kill(0);
  chain.SetChain({{1, false}});
  chain.PublishToAll();
  Message resent = first;
  resent.envelope.mutable_push_request()->set_flush(true);
  EXPECT_EQ(Pushed(chain.Ask(1, resent)).applied_version(), 1u);
  EXPECT_THAT(Values(chain, 1), ElementsAre(-3, -3, -3, -3));
}

TEST_F(Replication, AFlushThatComesBeforeItsPushIsAnsweredWithARequestForTheBytes) {
  ChainDriver chain(kBuffered3, 3, 2, 2);
  chain.PublishToAll();
  Message push = GroupPush(1, 1, 2);
  EXPECT_FALSE(Pushed(chain.Ask(0, GroupPush(2, 1, 4))).durable());
  EXPECT_EQ(CodeOf(chain.Ask(0, Flushed(push))), Code::kUnavailable);
  EXPECT_EQ(chain.replica(0).content()->version(), Version()) << "the other push still waits";
  push.envelope.mutable_push_request()->set_flush(true);
  chain.Deliver(0, push);
  chain.Settle();
  EXPECT_THAT(chain.Answers(), SizeIs(2));
  EXPECT_THAT(Values(chain, 0), ElementsAre(-3, -3, -3, -3));
}

TEST_F(Replication, AFlushDoesNotEndAStepOrARoundEarly) {
  const Contract local{.kind = Contract::Kind::kLocal, .local_steps = 1};
  for (const Contract& contract : {Contract{.kind = Contract::Kind::kBsp}, local}) {
    ChainDriver chain(contract, 2, 2, 2);
    chain.PublishToAll();
    const Message push = GroupPush(1, 1, 2);
    EXPECT_FALSE(Pushed(chain.Ask(0, push)).durable());
    EXPECT_FALSE(Pushed(chain.Ask(0, Flushed(push))).durable());
    EXPECT_EQ(chain.replica(0).content()->version(), Version());
    chain.Deliver(0, GroupPush(2, 1, 4));
    chain.Settle();
    EXPECT_EQ(chain.replica(0).content()->version(), Version(1));
    EXPECT_EQ(chain.Digest(1), chain.Digest(0));
  }
}

TEST_F(Replication, PlantedBugIgnoresFlushes) {
  const BugInPlace bug(PlantedBug::kIgnoreFlush);
  ChainDriver chain(kBuffered3, 3, 2, 2);
  chain.PublishToAll();
  const Message push = GroupPush(1, 1, 2);
  chain.Ask(0, push);
  EXPECT_FALSE(Pushed(chain.Ask(0, Flushed(push))).durable());
}

TEST_F(Replication, WhatIsHeldIsAnsweredTwice) {
  ChainDriver chain(kBuffered2, 2, 2, 2);
  chain.PublishToAll();
  const Message first = GroupPush(1, 1, 2);
  const Message received = chain.Ask(0, ShardDriver::WithValues(first, 1));
  EXPECT_FALSE(Pushed(received).durable());
  EXPECT_EQ(Pushed(received).applied_version(), 0u);
  EXPECT_THAT(ShardDriver::ValuesIn(received), ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(Pushed(chain.Ask(0, first)).durable());

  chain.Deliver(0, GroupPush(2, 1, 4));
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.Settle();
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 2u);
  for (const Message& answer : answers) {
    EXPECT_TRUE(Pushed(answer).durable());
    EXPECT_EQ(Pushed(answer).applied_version(), 1u);
  }
  const auto receipt = std::find_if(answers.begin(), answers.end(), [](const Message& answer) {
    return Pushed(answer).id().producer() == 1;
  });
  ASSERT_NE(receipt, answers.end());
  EXPECT_EQ(receipt->envelope.header().request_id(), first.envelope.header().request_id());
  EXPECT_TRUE(Pushed(*receipt).duplicate()) << "it answers the second try";
  EXPECT_THAT(receipt->frames, IsEmpty());
}

TEST_F(Replication, TheNextInTheChainGoesOnWhenTheHeadIsGone) {
  ChainDriver chain(kAsync, 2, 3, 3);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 5; ++step) chain.Ask(0, GroupPush(1, step, 1));
  const std::vector<float> before = Values(chain, 0);
  chain.Kill(0);
  chain.SetChain({{1, false}, {2, false}});
  chain.PublishToAll();
  EXPECT_EQ(Values(chain, 1), before);
  const Message again = chain.Ask(1, GroupPush(1, 5, 1));
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_EQ(Pushed(again).applied_version(), 5u);
  const Message next = chain.Ask(1, GroupPush(1, 6, 1));
  EXPECT_EQ(Pushed(next).applied_version(), 6u);
  EXPECT_EQ(Pushed(next).state().clocks(0).step(), 6u);
  EXPECT_EQ(chain.Digest(1), chain.Digest(2));
}

// Step 3 was received by the former head only, from a member whose part another member has taken
// over since. Both repeat what they keep, in any order.
TEST_F(Replication, ANewHeadTakesTheStepsOfAGroupInOrderWhoeverPushesThem) {
  ChainDriver chain(kAsync, 1, 3, 3);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 2; ++step) chain.Ask(0, GroupPush(1, step, 1));
  chain.Kill(0);
  chain.SetChain({{1, false}, {2, false}});
  chain.PublishToAll();
  const Message early = chain.Ask(1, GroupPush(1, 4, 1));
  EXPECT_EQ(CodeOf(early), Code::kUnavailable);
  EXPECT_THAT(early.envelope.status().message(), HasSubstr("steps to 2"));
  EXPECT_EQ(Pushed(chain.Ask(1, GroupPush(1, 3, 1))).state().clocks(0).step(), 3u);
  EXPECT_EQ(Pushed(chain.Ask(1, GroupPush(1, 4, 1))).state().clocks(0).step(), 4u);
}

TEST_F(Replication, ANewHeadDoesNotWaitForAStepThatNobodyRepeats) {
  ChainDriver chain(kAsync, 1, 3, 3);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 2; ++step) chain.Ask(0, GroupPush(1, step, 1));
  EXPECT_EQ(CodeOf(chain.Ask(0, GroupPush(1, 7, 1))), Code::kOk) << "a group may skip steps";
  chain.Kill(0);
  chain.SetChain({{1, false}, {2, false}});
  chain.PublishToAll();
  EXPECT_EQ(CodeOf(chain.Ask(1, GroupPush(1, 9, 1))), Code::kUnavailable);
  chain.Pass(absl::Seconds(1));
  EXPECT_EQ(Pushed(chain.Ask(1, GroupPush(1, 9, 1))).state().clocks(0).step(), 9u);
  EXPECT_EQ(CodeOf(chain.Ask(1, GroupPush(1, 12, 1))), Code::kOk);
}

// Senders keep the pushes that the former head had received; they send these to the new head first,
// once they know of it.
TEST_F(Replication, ANewHeadTakesPushesFromThoseWhoKnowOfIt) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  const uint64_t before = chain.job.view.epoch();
  chain.SetChain({{1, false}, {0, false}, {2, false}});
  chain.PublishToAll();
  const uint64_t since = chain.job.view.epoch();
  const Message refused = chain.Ask(1, Push(2, 1), before);
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(refused.envelope.status().message(), HasSubstr("follow the newer view"));
  EXPECT_EQ(CodeOf(chain.Ask(1, Pull(), before)), Code::kOk) << "a read needs no such order";
  // It has been the head since, regardless of changes behind it.
  chain.SetChain({{1, false}, {2, false}});
  chain.PublishToAll();
  EXPECT_EQ(Pushed(chain.Ask(1, Push(2, 1), since)).applied_version(), 2u);
}

// The head dies with records of which only the middle server has some: the chain continues from
// there.
TEST_F(Replication, ATailThatLagsGetsTheRestFromTheNewHead) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  chain.lose = [](const Message& message) {
    return IsRecord(message) && message.to().node == ChainDriver::Id(2);
  };
  for (uint64_t sequence = 2; sequence <= 4; ++sequence) chain.Deliver(0, Push(sequence, 1));
  chain.Settle();
  EXPECT_THAT(chain.Answers(), IsEmpty());
  EXPECT_EQ(chain.replica(2).content()->index(), 1u);
  chain.Kill(0);
  chain.lose = [](const Message&) { return false; };
  chain.SetChain({{1, false}, {2, false}});
  chain.PublishToAll();
  const Message reply = chain.Ask(1, Push(4, 1));
  EXPECT_TRUE(Pushed(reply).duplicate());
  EXPECT_TRUE(Pushed(reply).durable());
  EXPECT_EQ(chain.Digest(1), chain.Digest(2));
}

TEST_F(Replication, ADeadMiddleIsBridged) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  chain.lose = [](const Message& message) { return message.to().node == ChainDriver::Id(2); };
  chain.Deliver(0, Push(2, 1));
  chain.Settle();
  chain.Kill(1);
  chain.lose = [](const Message&) { return false; };
  chain.SetChain({{0, false}, {2, false}});
  chain.PublishToAll();
  chain.Settle();
  EXPECT_THAT(chain.Answers(), SizeIs(1));
  EXPECT_EQ(chain.Digest(0), chain.Digest(2));
}

// Pushes that a server alone called durable, while it only held them, must not be lost by a move.
TEST_F(Replication, AHeadThatIsNoneAnyMoreAcknowledgesNothing) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  chain.SetChain({{1, false}});
  chain.Publish(1);
  chain.Deliver(0, Push(2, 1));
  chain.Pass(absl::Milliseconds(500));
  EXPECT_THAT(chain.Answers(), IsEmpty());
  EXPECT_EQ(Pushed(chain.Ask(1, Push(2, 1))).applied_version(), 2u);
  EXPECT_EQ(chain.replica(1).content()->version(), Version(2));
  chain.Publish(0);
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(CodeOf(answers[0]), Code::kFailedPrecondition);
}

TEST_F(Replication, ARecordFromElsewhereThanThePredecessorIsCounted) {
  ChainDriver chain(kAsync, 0, 3, 2);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  chain.sent.clear();
  chain.lose = [](const Message& message) { return message.envelope.has_replicate_request(); };
  chain.Ask(0, Push(2, 1));
  const auto record =
      std::find_if(chain.sent.begin(), chain.sent.end(),
                   [](const Message& message) { return message.envelope.has_replicate_request(); });
  ASSERT_NE(record, chain.sent.end());
  const Message genuine = *record;
  Message forged = genuine;
  SetSender(ChainDriver::Id(2).value(), forged);
  const uint64_t before = chain.actor(1).counters().malformed;
  const size_t sent = chain.sent.size();
  chain.Inject(1, forged);
  EXPECT_EQ(chain.replica(1).content()->version(), Version(1));
  EXPECT_EQ(chain.actor(1).counters().malformed, before + 1);
  EXPECT_EQ(chain.sent.size(), sent);
  chain.Inject(1, genuine);
  EXPECT_EQ(chain.replica(1).content()->version(), Version(2));
  EXPECT_EQ(chain.actor(1).counters().malformed, before + 1);
}

// Ends the lease of the first server now.
void EndLease(ChainDriver& chain) {
  Message notice;
  notice.set_to({ChainDriver::Id(0), 1});
  notice.envelope.mutable_lease_notice()->set_until_ns(absl::ToUnixNanos(chain.now));
  chain.Inject(0, notice);
  chain.Answers();  // the loop confirms it
}

// A shard without a second full replica needs a lease; a whole chain needs no clock.
TEST_F(Replication, OnlyAShardWithOneFullReplicaNeedsALease) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  EndLease(chain);
  EXPECT_EQ(CodeOf(chain.Ask(0, Push(1, 1))), Code::kOk);
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  EXPECT_EQ(CodeOf(chain.Ask(0, Push(2, 1))), Code::kUnavailable);
  EXPECT_EQ(CodeOf(chain.Ask(0, Pull())), Code::kUnavailable);
}

TEST_F(Replication, AnAnswerThatWaitsForTheChainHasADeadline) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.Kill(1);
  chain.Deliver(0, Push(1, 1));
  chain.Pass(absl::Milliseconds(1100));
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(CodeOf(answers[0]), Code::kDeadlineExceeded);
  EXPECT_THAT(std::string(StatusOf(answers[0]).message()), HasSubstr("server-1"));
  EXPECT_FALSE(Pushed(answers[0]).durable());
  EXPECT_EQ(Pushed(answers[0]).state().version(), 0u);
}

TEST_F(Replication, EncodedValuesThatWaitForTheChainAreOfTheirVersionOrRefusedWhole) {
  Message pull = Pull();
  pull.envelope.mutable_pull_request()->mutable_read()->set_value_format(proto::WIRE_BFLOAT16);
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.lose = IsReply;
  chain.Deliver(0, Push(1, 1));
  chain.Deliver(0, pull);
  chain.Deliver(0, Push(2, 1));
  chain.Settle();
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Milliseconds(200));
  std::vector<Message> answers = chain.Answers();
  std::erase_if(answers, [](const Message& answer) { return !answer.envelope.has_pull_reply(); });
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].envelope.pull_reply().state().version(), 1u);
  EXPECT_EQ(answers[0].envelope.pull_reply().value_format(), proto::WIRE_BFLOAT16);
  ASSERT_EQ(answers[0].frames.size(), 1u);
  // -1 as bfloat16.
  EXPECT_THAT(answers[0].frames[0].bytes(),
              ElementsAre(0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf));

  chain.Kill(1);
  chain.Deliver(0, Push(3, 1));
  chain.Deliver(0, pull);
  chain.Pass(absl::Milliseconds(1100));
  answers = chain.Answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(CodeOf(answers[1]), Code::kDeadlineExceeded);
  EXPECT_THAT(answers[1].frames, IsEmpty());
  EXPECT_EQ(answers[1].envelope.frame_checksums_size(), 0);
  EXPECT_EQ(answers[1].envelope.pull_reply().value_format(), proto::WIRE_FLOAT32);
}

TEST_F(Replication, BspGoesOnWhereItWas) {
  ChainDriver chain(kBsp, 2, 2, 2);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 3; ++step) {
    chain.Ask(0, GroupPush(1, step, 1));
    chain.Deliver(0, GroupPush(2, step, 1));
    chain.Settle();
  }
  chain.Answers();
  EXPECT_FALSE(Pushed(chain.Ask(0, GroupPush(1, 4, 1))).durable());
  chain.Kill(0);
  chain.SetChain({{1, false}});
  chain.PublishToAll();
  EXPECT_TRUE(Pushed(chain.Ask(1, GroupPush(1, 3, 1))).duplicate());
  chain.Deliver(1, ShardDriver::WithValues(GroupPush(2, 4, 1), 4));
  EXPECT_THAT(chain.Answers(), IsEmpty()) << "group 1 must push step 4 again";
  chain.Deliver(1, GroupPush(1, 4, 1));
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 2u);
  for (const Message& answer : answers) EXPECT_EQ(Pushed(answer).applied_version(), 4u);
  EXPECT_THAT(Values(chain, 1), ElementsAre(-4, -4, -4, -4));
}

TEST_F(Replication, RefusedPushesLeaveNoTraceAnywhere) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 0.1f));
  const uint64_t before = chain.Digest(0);
  EXPECT_EQ(CodeOf(chain.Ask(0, Push(2, std::nanf("")))), Code::kInvalidArgument);
  EXPECT_EQ(chain.Digest(0), before);
  EXPECT_EQ(chain.Digest(1), before);
  EXPECT_EQ(chain.replica(1).content()->index(), 1u);
}

TEST_F(Replication, DiscardedPushesAreKnownToReplicas) {
  ChainDriver chain({.kind = Contract::Kind::kBuffered, .buffer = 1, .staleness_cut = 2}, 1, 2, 2);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 4; ++step) chain.Ask(0, GroupPush(1, step, 1));
  Message stale = GroupPush(1, 5, 1);
  stale.envelope.mutable_push_request()->set_base_version(1);
  EXPECT_TRUE(Pushed(chain.Ask(0, stale)).discarded());
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  chain.Kill(0);
  chain.SetChain({{1, false}});
  chain.PublishToAll();
  const Message again = chain.Ask(1, stale);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_TRUE(Pushed(again).discarded());
  EXPECT_EQ(Pushed(again).state().clocks(0).step(), 5u);
}

TEST_F(Replication, RecordsInOtherFormatsTravelAsTheyCame) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  Message push = Push(1, 1);
  push.envelope.mutable_push_request()->set_format(proto::WIRE_BFLOAT16);
  const std::vector<uint16_t> halves(4, 0x3f80);  // 1
  push.frames[0] = Buffer::CopyOf({reinterpret_cast<const uint8_t*>(halves.data()), 8});
  push.envelope.clear_frame_checksums();
  EXPECT_EQ(CodeOf(chain.Ask(0, push)), Code::kOk);
  EXPECT_THAT(Values(chain, 0), ElementsAre(-1, -1, -1, -1));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  const auto record = std::find_if(chain.sent.begin(), chain.sent.end(), IsRecord);
  EXPECT_EQ(record->frames[0].data(), push.frames[0].data()) << "it was copied";
}

TEST_F(Replication, NoRecordKeepsTheMemoryOfItsSender) {
  FrameLender lender;
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  // The head and the middle keep what they send, until the tail has it.
  chain.lose = [&](const Message& message) { return IsRecord(message); };
  chain.Deliver(0, lender.Lend(Push(1, 1)));
  EXPECT_EQ(lender.out(), 0u);
  ASSERT_THAT(chain.sent, SizeIs(1));
  Message record = chain.sent[0];
  record.set_to({ChainDriver::Id(1), 1});
  chain.Inject(1, lender.Lend(record));
  EXPECT_EQ(lender.out(), 0u);
  for (const uint32_t server : {0, 1}) EXPECT_EQ(chain.replica(server).kept_bytes(), 16u);
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Seconds(2));
  EXPECT_EQ(chain.replica(2).content()->version(), Version(1));
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
}

TEST_F(Replication, StrangersAndNonsenseAlongTheChainChangeNothing) {
  ChainDriver chain(kAsync, 0, 3, 2);
  chain.PublishToAll();
  chain.Ask(0, Push(1, 1));
  const uint64_t before = chain.Digest(1);
  chain.lose = IsRecord;
  chain.Deliver(0, Push(2, 1));
  const Message good = chain.sent.back();
  std::vector<Message> bad(8, good);
  bad[0].envelope.mutable_header()->set_node(ChainDriver::Id(2).value());
  bad[1].frames[0] = ShardDriver::Floats({1, 1, 1, 2});
  bad[2].frames[0] = ShardDriver::Floats({1, 1});
  bad[3].envelope.mutable_replicate_request()->set_momentum(1.5);
  bad[4].envelope.mutable_replicate_request()->set_rate_factor(std::nan(""));
  bad[5].envelope.mutable_replicate_request()->set_samples(0);
  bad[6].envelope.mutable_replicate_request()->set_index(7);
  bad[7].envelope.mutable_replicate_request()->mutable_chain()->set_chain_epoch(1);
  for (const Message& message : bad) {
    chain.Inject(1, message);
    EXPECT_EQ(chain.Digest(1), before) << message.envelope.ShortDebugString();
  }
  const Message& refusal = chain.sent.back();
  EXPECT_EQ(CodeOf(refusal), Code::kAborted);
  EXPECT_EQ(refusal.envelope.replicate_reply().chain().chain_epoch(), chain.shard().chain_epoch());
  chain.Inject(1, good);
  EXPECT_EQ(chain.replica(1).content()->index(), 2u);
}

// Each planted bug of this folder, with its visible effect.
TEST_F(Replication, PlantedBugsShow) {
  {
    const BugInPlace bug(PlantedBug::kAcknowledgeBeforeReplicate);
    ChainDriver chain(kAsync, 0, 2, 2);
    chain.PublishToAll();
    chain.Deliver(0, Push(1, 1));
    EXPECT_THAT(chain.Answers(), SizeIs(1));
  }
  {
    const BugInPlace bug(PlantedBug::kForgetDedupOnTakeover);
    ChainDriver chain(kAsync, 0, 2, 2);
    chain.PublishToAll();
    chain.Ask(0, Push(1, 1));
    chain.SetChain({{1, false}});
    chain.PublishToAll();
    EXPECT_FALSE(Pushed(chain.Ask(1, Push(1, 1))).duplicate());
  }
  {
    const BugInPlace bug(PlantedBug::kAcceptOldEpoch);
    ChainDriver chain(kAsync, 0, 3, 2);
    chain.PublishToAll();
    chain.Ask(0, Push(1, 1));
    chain.SetChain({{1, false}, {2, true}});
    chain.Publish(1);
    chain.Deliver(0, Push(2, 1));
    chain.Settle();
    EXPECT_EQ(chain.replica(1).content()->index(), 2u);
  }
  {
    const BugInPlace bug(PlantedBug::kDropClocksOnMove);
    ChainDriver chain(kAsync, 1, 2, 1);
    chain.PublishToAll();
    chain.Ask(0, GroupPush(1, 1, 1));
    chain.SetChain({{0, false}, {1, true}});
    chain.PublishToAll();
    chain.Pass(absl::Milliseconds(50));
    chain.SetChain({{1, false}});
    chain.PublishToAll();
    EXPECT_EQ(chain.Ask(1, Pull()).envelope.pull_reply().state().clocks_size(), 0);
  }
  {
    const BugInPlace bug(PlantedBug::kIgnoreLease);
    ChainDriver chain(kAsync, 0, 1, 1);
    chain.PublishToAll();
    EndLease(chain);
    EXPECT_EQ(CodeOf(chain.Ask(0, Push(1, 1))), Code::kOk);
  }
  {
    const BugInPlace bug(PlantedBug::kJoiningCountsForLease);
    ChainDriver chain(kAsync, 0, 2, 1);
    chain.SetChain({{0, false}, {1, true}});
    chain.PublishToAll();
    EndLease(chain);
    EXPECT_EQ(CodeOf(chain.Ask(0, Push(1, 1))), Code::kOk);
  }
  {
    const BugInPlace bug(PlantedBug::kSkipMissingRecord);
    ChainDriver chain(kAsync, 0, 2, 2);
    chain.PublishToAll();
    chain.Ask(0, Push(1, 1));
    chain.lose = IsRecord;
    chain.Deliver(0, Push(2, 1));
    chain.lose = [](const Message&) { return false; };
    chain.Deliver(0, Push(3, 1));
    chain.Settle();
    EXPECT_EQ(chain.replica(1).content()->index(), 3u);
    EXPECT_EQ(chain.replica(1).content()->version(), Version(2));
  }
}

}  // namespace
}  // namespace covey::server
