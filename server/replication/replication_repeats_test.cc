// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <utility>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "common/net/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"

// Tests of resends along a chain: which records are sent again, and which are not.

namespace covey::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
bool IsRecord(const Message& message) { return message.envelope.has_replicate_request(); }
bool HasBytes(const Message& message) { return !message.frames.empty(); }

class ReplicationRepeats : public ::testing::Test {
 protected:
  Message Push(uint64_t sequence, float value) {
    return requests_.ClientPush(sequence, {value, value, value, value});
  }
  // Number of messages with frames that were sent along the chain since the last call.
  static size_t TakeFrames(ChainDriver& chain) {
    const auto frames = std::count_if(chain.sent.begin(), chain.sent.end(), HasBytes);
    chain.sent.clear();
    return static_cast<size_t>(frames);
  }

  ShardDriver requests_{TestJob(kAsync, 2)};
};

TEST_F(ReplicationRepeats, LostMessagesAreSentAgain) {
  ChainDriver chain(kAsync, 0, 3, 2, 3000);
  chain.PublishToAll();
  Random random(7);
  chain.lose = [&random](const Message&) { return random.Uniform() < 0.3; };
  const auto push = [&](uint64_t sequence) {
    return requests_.ClientPush(sequence, std::vector<float>(3000, 1));
  };
  size_t answered = 0;
  for (uint64_t sequence = 1; sequence <= 40; ++sequence) {
    chain.Deliver(0, push(sequence));
    if (sequence == 20) {
      chain.SetChain({{0, false}, {1, false}, {2, true}});
      chain.PublishToAll();
    }
    chain.Pass(absl::Milliseconds(30));
    answered += chain.Answers().size();
  }
  chain.Pass(absl::Seconds(5));
  EXPECT_EQ(answered + chain.Answers().size(), 40u);
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
  const std::vector<proto::ReplicaReport> reports = chain.Reports();
  ASSERT_EQ(reports.size(), 1u) << "by the one in front of it";
  EXPECT_EQ(reports[0].kind(), proto::ReplicaReport::READY);
}

// A link on which records and replies take this long in each direction.
class SlowLink {
 public:
  SlowLink(ChainDriver& chain, uint32_t server, absl::Duration each_way)
      : chain_(chain), to_(ChainDriver::Id(server)), each_way_(each_way) {
    chain.lose = [this](const Message& message) {
      if (message.to().node != to_ && message.from().node != to_) return false;
      late_.emplace_back(chain_.now + each_way_, message);
      return true;
    };
  }
  void Pass(absl::Duration duration) {
    for (const absl::Time until = chain_.now + duration; chain_.now < until;) {
      chain_.Pass(absl::Milliseconds(10));
      for (; !late_.empty() && late_.front().first <= chain_.now; late_.pop_front()) {
        const Message message = late_.front().second;
        chain_.Inject(static_cast<uint32_t>(message.to().node.value() - ChainDriver::Id(0).value()),
                      message);
      }
      chain_.Settle();
    }
  }

 private:
  ChainDriver& chain_;
  const NodeId to_;
  const absl::Duration each_way_;
  std::deque<std::pair<absl::Time, Message>> late_;
};

// However slow it is, within and beyond the retry delay.
TEST_F(ReplicationRepeats, ASlowSuccessorGetsEachRecordOnce) {
  for (const uint32_t slow : {1u, 2u}) {  // The next one, or the one behind it.
    ChainDriver chain(kAsync, 0, 3, 3);
    chain.PublishToAll();
    SlowLink link(chain, slow, absl::Milliseconds(700));
    constexpr size_t kPushes = 60;
    for (uint64_t sequence = 1; sequence <= kPushes; ++sequence) {
      Message push = Push(sequence, 1);
      push.envelope.mutable_push_request()->set_deadline_ms(60'000);
      chain.Deliver(0, push);
      link.Pass(absl::Milliseconds(20));
    }
    link.Pass(absl::Seconds(4));
    EXPECT_EQ(chain.Answers().size(), kPushes);
    EXPECT_EQ(chain.Digest(0), chain.Digest(2));
    EXPECT_THAT(chain.Reports(), IsEmpty());
    EXPECT_EQ(TakeFrames(chain), 2 * kPushes) << "over two links, slow server " << slow;
  }
}

// Frozen for a while.
TEST_F(ReplicationRepeats, AFrozenSuccessorGetsEachRecordOnce) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  std::vector<Message> waiting;
  chain.lose = [&](const Message& message) {
    waiting.push_back(message);
    return true;
  };
  constexpr size_t kPushes = 40;
  for (uint64_t sequence = 1; sequence <= kPushes; ++sequence) {
    chain.Deliver(0, Push(sequence, 1));
  }
  chain.Pass(absl::Milliseconds(2500));
  chain.lose = [](const Message&) { return false; };
  for (const Message& message : std::exchange(waiting, {})) {
    chain.Inject(1, message);
    chain.Settle();
  }
  chain.Pass(absl::Seconds(2));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_EQ(TakeFrames(chain), kPushes);
}

TEST_F(ReplicationRepeats, WhatIsLostIsSentAgainOnceAndSoon) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.lose = [](const Message&) { return true; };
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) chain.Deliver(0, Push(sequence, 1));
  chain.lose = [](const Message&) { return false; };
  EXPECT_EQ(TakeFrames(chain), 5u);
  chain.Pass(absl::Milliseconds(70));
  EXPECT_THAT(chain.Answers(), SizeIs(5));
  EXPECT_EQ(TakeFrames(chain), 5u);
  // A gap is noticed at once.
  chain.lose = IsRecord;
  chain.Deliver(0, Push(6, 1));
  chain.lose = [](const Message&) { return false; };
  chain.Deliver(0, Push(7, 1));
  chain.Settle();
  EXPECT_THAT(chain.Answers(), SizeIs(2));
  EXPECT_EQ(TakeFrames(chain), 4u);
  // Only the reply was lost.
  chain.lose = [](const Message& message) { return message.envelope.has_replicate_reply(); };
  chain.Deliver(0, Push(8, 1));
  chain.Settle();
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Milliseconds(70));
  EXPECT_THAT(chain.Answers(), SizeIs(1));
  EXPECT_EQ(TakeFrames(chain), 1u);
}

// Also when only the epoch of the chain changes, and when another server becomes the predecessor.
TEST_F(ReplicationRepeats, AChangeOfTheChainSendsNothingThatIsHeld) {
  ChainDriver chain(kAsync, 0, 3, 3);
  chain.PublishToAll();
  // The tail's acknowledgement does not reach the head.
  chain.lose = [](const Message& message) {
    return message.envelope.has_replicate_reply() && message.to().node == ChainDriver::Id(0);
  };
  constexpr size_t kPushes = 10;
  for (uint64_t sequence = 1; sequence <= kPushes; ++sequence) {
    chain.Deliver(0, Push(sequence, 1));
    chain.Settle();
  }
  EXPECT_EQ(TakeFrames(chain), 2 * kPushes);
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.lose = [](const Message&) { return false; };
  chain.SetChain({{0, false}, {2, false}});
  chain.PublishToAll();
  chain.Settle();
  chain.Pass(absl::Milliseconds(20));
  EXPECT_THAT(chain.Answers(), SizeIs(kPushes));
  chain.Deliver(0, Push(kPushes + 1, 1));
  chain.SetChain({{0, false}, {2, false}, {1, true}});
  chain.Publish(0);
  chain.Settle();
  chain.Publish(2);
  chain.Pass(absl::Milliseconds(20));
  EXPECT_THAT(chain.Answers(), SizeIs(1));
  EXPECT_LE(TakeFrames(chain), 2u);
}

// Its content is large, and the transfer takes long.
TEST_F(ReplicationRepeats, AReplicaThatIsFilledSlowlyGetsEachPieceOnce) {
  constexpr uint64_t kElements = 4 * (kReplicaPieceBytesMax / sizeof(float));
  ChainDriver chain(kAsync, 0, 2, 1, kElements);
  chain.PublishToAll();
  chain.Ask(0, requests_.ClientPush(1, std::vector<float>(kElements, 1)));
  chain.sent.clear();
  SlowLink link(chain, 1, absl::Milliseconds(700));
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  link.Pass(absl::Seconds(12));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_THAT(chain.Reports(), SizeIs(1));
  EXPECT_EQ(TakeFrames(chain), 4u + 1u) << "values, and what is known of pushes";
}

TEST_F(ReplicationRepeats, LostPiecesAreSentAgain) {
  constexpr uint64_t kElements = 4 * (kReplicaPieceBytesMax / sizeof(float));
  ChainDriver chain(kAsync, 0, 2, 1, kElements);
  chain.PublishToAll();
  chain.Ask(0, requests_.ClientPush(1, std::vector<float>(kElements, 1)));
  Random random(3);
  chain.lose = [&random](const Message&) { return random.Uniform() < 0.4; };
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Seconds(8));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_THAT(chain.Reports(), SizeIs(1));
}

TEST_F(ReplicationRepeats, WhoDoesNotKnowTheChainYetDropsItsRecords) {
  ChainDriver chain(kAsync, 0, 3, 2);
  chain.PublishToAll();
  chain.SetChain({{0, false}, {1, false}, {2, true}});
  chain.Publish(0);
  chain.Deliver(0, Push(1, 1));
  chain.Settle();
  EXPECT_EQ(chain.replica(1).content() == nullptr ? 0 : chain.replica(1).content()->index(), 0u);
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(100));
  EXPECT_THAT(chain.Answers(), SizeIs(1));
}

TEST_F(ReplicationRepeats, SaysThatASuccessorIsSilent) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.Kill(1);
  chain.Pass(absl::Seconds(10));
  EXPECT_THAT(chain.Reports(), IsEmpty()) << "nobody asked it anything";
  Message push = Push(1, 1);
  push.envelope.mutable_push_request()->set_deadline_ms(5000);
  chain.Deliver(0, push);
  chain.Pass(absl::Milliseconds(2900));
  EXPECT_THAT(chain.Reports(), IsEmpty());
  chain.Pass(absl::Milliseconds(200));
  const std::vector<proto::ReplicaReport> reports = chain.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind(), proto::ReplicaReport::UNREACHABLE);
  EXPECT_EQ(reports[0].node(), ChainDriver::Id(1).value());
  chain.SetChain({{0, false}});
  chain.PublishToAll();
  EXPECT_THAT(chain.Answers(), SizeIs(1));
}

TEST_F(ReplicationRepeats, ItsOwnPauseIsNoSilenceOfTheSuccessor) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  Message push = Push(1, 1);
  push.envelope.mutable_push_request()->set_deadline_ms(5000);
  chain.Deliver(0, push);
  // The head stands still, and wakes before it has read what the successor has sent.
  chain.now += absl::Seconds(4);
  Outbox outbox;
  chain.actor(0).Wake(chain.now, outbox);
  for (const Message& message : outbox.TakeMessages()) {
    EXPECT_FALSE(message.envelope.has_replica_report_request());
  }
  chain.Pass(absl::Milliseconds(10));
  EXPECT_THAT(chain.Answers(), SizeIs(1));

  // A successor that is silent from then on is reported.
  chain.Kill(1);
  chain.Deliver(0, Push(2, 1));
  chain.now += absl::Seconds(4);
  chain.Pass(absl::Milliseconds(2400));
  EXPECT_THAT(chain.Reports(), IsEmpty());
  chain.Pass(absl::Milliseconds(700));
  EXPECT_THAT(chain.Reports(), SizeIs(1));
}

TEST_F(ReplicationRepeats, OnlySoManyRecordsWaitForTheSuccessor) {
  ChainDriver chain(kAsync, 0, 2, 2);
  chain.PublishToAll();
  chain.lose = IsRecord;
  for (uint64_t sequence = 1; sequence <= kRecordsInFlightPerShard; ++sequence) {
    chain.Deliver(0, Push(sequence, 1));
  }
  EXPECT_THAT(chain.Answers(), IsEmpty());
  chain.Deliver(0, Push(kRecordsInFlightPerShard + 1, 1));
  const std::vector<Message> answers = chain.Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(CodeOf(answers[0]), Code::kResourceExhausted);
  EXPECT_GT(answers[0].envelope.status().retry_after_ms(), 0u);
  chain.lose = [](const Message&) { return false; };
  chain.Pass(absl::Seconds(1));
  EXPECT_THAT(chain.Answers(), SizeIs(kRecordsInFlightPerShard));
  EXPECT_EQ(CodeOf(chain.Ask(0, Push(kRecordsInFlightPerShard + 1, 1))), Code::kOk);
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
}

}  // namespace
}  // namespace covey::server
