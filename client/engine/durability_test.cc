// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "client/testing/request_engine_fixture.h"
#include "common/base/buffer.h"
#include "common/base/planted_bug.h"
#include "common/base/planted_bug_switch.h"
#include "common/cluster/limits.h"

namespace covey::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class DurabilityTest : public RequestEngineTest {
 protected:
  // A push that both servers have received; shard 1's is not durable.
  std::vector<Message> PushReceived() {
    Start(PushAll());
    std::vector<Message> sent = outbox_.TakeMessages();
    for (Message& message : sent) message.frames.clear();
    Answer(sent[0], 1);
    Answer(sent[1], 1, kReceived);
    return sent;
  }
  void Flush(absl::Duration patience,
             RequestEngine::FlushScope scope = RequestEngine::FlushScope::kAll) {
    engine_.Flush(
        now_, scope, now_ + patience,
        [this](absl::Time, const absl::Status& status, Outbox&) { flushed_.push_back(status); },
        outbox_);
  }

  // The same push, as step 4 of group 9.
  void PushReceivedOfGroup(uint64_t generation) {
    Operation push = PushAll();
    push.group = GroupIdentity{.group = GroupId(9), .generation = generation, .step = Step(4)};
    Start(std::move(push));
    const std::vector<Message> sent = outbox_.TakeMessages();
    Answer(sent[0], 1);
    Answer(sent[1], 1, kReceived);
  }
  // Refuses as a server of this epoch does when a newer generation of the group has pushed.
  void RefuseOvertaken(const Message& request, uint64_t epoch) {
    Message reply = ReplyTo(request);
    reply.envelope.mutable_header()->set_epoch(epoch);
    *reply.envelope.mutable_push_reply()->mutable_id() = request.envelope.push_request().id();
    SetStatus(absl::AbortedError("the generation has been replaced"), reply);
    engine_.Receive(now_, reply, outbox_);
  }
  // The generation of the group, and that of the push's producer.
  static std::pair<uint64_t, uint64_t> GenerationsOf(const Message& message) {
    const proto::PushRequest& push = message.envelope.push_request();
    return {push.group_generation(), push.id().producer_incarnation()};
  }

  static bool IsFlush(const Message& message) { return message.envelope.push_request().flush(); }

  static uint64_t SequenceOf(const Message& message) {
    return message.envelope.push_request().id().sequence();
  }

  std::vector<absl::Status> flushed_;
};

TEST_F(DurabilityTest, EndsWhenReceivedAndKeepsTheBytesUntilDurable) {
  const std::vector<Message> sent = PushReceived();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].status.ok());
  EXPECT_FALSE(results_[0].durable);
  EXPECT_EQ(engine_.undurable_pushes(), 1u);
  EXPECT_EQ(engine_.undurable_bytes(), 8u);
  Answer(sent[1], 2, kReceived);
  EXPECT_EQ(engine_.undurable_pushes(), 1u);
  Answer(sent[1], 2);
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
  EXPECT_EQ(engine_.undurable_bytes(), 0u);
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_TRUE(After(absl::Minutes(1)).empty());
}

TEST_F(DurabilityTest, TellsHowLongPushesTookUntilDurable) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  After(absl::Milliseconds(20));
  Answer(sent[0], 1);
  EXPECT_EQ(engine_.push_times().sum(), absl::Milliseconds(20));
  Answer(sent[1], 1, kReceived);
  EXPECT_EQ(engine_.push_times().sum(), absl::Milliseconds(20)) << "it may still be lost";
  After(absl::Milliseconds(200));
  Answer(sent[1], 2);
  EXPECT_EQ(engine_.push_times().sum(), absl::Milliseconds(20 + 220));
}

TEST_F(DurabilityTest, SendsWhatIsNotDurableToTheNewHeadUnderTheSameIdentity) {
  const std::vector<Message> sent = PushReceived();
  gradient_.assign(6, -1);  // The memory belongs to the caller again.
  ShowView(View(2, kServerA, kServerA));
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].to(), (Address{NodeId(kServerA), 1}));
  EXPECT_EQ(again[0].envelope.header().request_id(), sent[1].envelope.header().request_id());
  const proto::PushRequest& push = again[0].envelope.push_request();
  EXPECT_EQ(push.id().SerializeAsString(),
            sent[1].envelope.push_request().id().SerializeAsString());
  EXPECT_FALSE(push.read().wanted());
  EXPECT_EQ(push.samples(), 8u);
  EXPECT_THAT(again[0].frames[0].As<float>(), ElementsAre(5, 6));
  EXPECT_TRUE(CheckFrameChecksums(again[0]).ok());
  // The new head holds the push in a buffer; when it dies, too, the next head gets the push.
  Answer(again[0], 1, kReceived);
  ShowView(View(3, kServerA, kServerB));
  EXPECT_EQ(After(absl::ZeroDuration()).size(), 1u);
  Answer(again[0], 2);
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
  EXPECT_EQ(engine_.counters().lost_pushes, 0u);
}

// A gradient in memory that the caller shares with the engine.
class SharedGradientTest : public DurabilityTest {
 protected:
  // The shards of the push lie behind 2 elements that are not pushed.
  SharedGradientTest() { Write(1); }
  void Write(float first) {
    const std::span<float> elements = memory_.MutableAs<float>();
    std::iota(elements.begin(), elements.end(), first - 2);
  }
  Operation PushShared() {
    Operation push = PushAll();
    push.gradient = memory_.As<float>().subspan(2);
    push.gradient_memory = memory_;
    return push;
  }

  Buffer memory_ = Buffer::Allocate(8 * sizeof(float));
};

TEST_F(SharedGradientTest, IsKeptWithoutACopyUntilDurable) {
  Start(PushShared());
  const std::vector<Message> sent = outbox_.TakeMessages();
  Answer(sent[0], 1);
  Answer(sent[1], 1, kReceived);
  ASSERT_EQ(results_.size(), 1u) << "the frames in `sent` are not waited for";
  EXPECT_EQ(engine_.undurable_bytes(), 8u);
  ShowView(View(2, kServerA, kServerA));
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].frames[0].data(), memory_.data() + 6 * sizeof(float));
  Answer(again[0], 1);
  EXPECT_EQ(engine_.undurable_bytes(), 0u);
}

TEST_F(SharedGradientTest, IsResentWithTheSameBitsAfterTheCallerTookItBack) {
  Start(PushShared());
  std::vector<Message> sent = outbox_.TakeMessages();
  for (Message& message : sent) message.frames.clear();
  EXPECT_FALSE(memory_.IsUnique());
  Answer(sent[0], 1);
  Answer(sent[1], 1, kReceived);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_FALSE(memory_.IsUnique());
  engine_.ReleaseGradient(Buffer::Allocate(64));
  EXPECT_FALSE(memory_.IsUnique()) << "released other memory";
  engine_.ReleaseGradient(memory_);
  ASSERT_TRUE(memory_.IsUnique());
  Write(100);
  ShowView(View(2, kServerA, kServerA));
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_THAT(again[0].frames[0].As<float>(), ElementsAre(5, 6));
  EXPECT_TRUE(CheckFrameChecksums(again[0]).ok());
  EXPECT_TRUE(memory_.IsUnique());
  Answer(again[0], 1);
  EXPECT_EQ(engine_.undurable_bytes(), 0u);
}

// The next step may begin inside `done`.
TEST_F(SharedGradientTest, IsTheCallersAloneWhenADurablePushIsDone) {
  Operation push = PushShared();
  bool unique = false;
  push.done = [&](absl::Time, const OperationResult&, Outbox&) { unique = memory_.IsUnique(); };
  Start(std::move(push));
  std::vector<Message> sent = outbox_.TakeMessages();
  for (Message& message : sent) message.frames.clear();
  Answer(sent[0], 1);
  Answer(sent[1], 1);
  EXPECT_TRUE(unique);
}

// Found by simulation: a new push overtook a kept one, and the clock of its group passed the gap.
TEST_F(DurabilityTest, ANewHeadGetsThePushesOfAProducerInOrder) {
  std::vector<std::vector<Message>> sent;
  for (int i = 0; i < 2; ++i) sent.push_back(PushReceived());
  ShowView(View(2, kServerA, kServerA));
  Start(PushAll());
  // The push to the other shard does not wait.
  std::vector<Message> first = outbox_.TakeMessages();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(SequenceOf(first[0]), 1u);
  EXPECT_EQ(first[1].envelope.push_request().id().shard(), 0u);
  Refuse(first[0], absl::UnavailableError("my view is on its way"));
  EXPECT_TRUE(outbox_.TakeMessages().empty());
  first = After(absl::Milliseconds(10));
  ASSERT_EQ(first.size(), 1u) << "refused: it goes first again";
  EXPECT_EQ(SequenceOf(first[0]), 1u);
  Answer(first[0], 1, kReceived);
  const std::vector<Message> second = outbox_.TakeMessages();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(SequenceOf(second[0]), 2u);
  Answer(second[0], 2);
  const std::vector<Message> third = outbox_.TakeMessages();
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(SequenceOf(third[0]), 3u);
}

// Found by simulation: a group's read was given values without that group's own last step.
// Snapshots count on it: a cut must not miss a push that is yet to be sent again.
TEST_F(DurabilityTest, KnowsTheFirstStepThatAHeadMayLack) {
  EXPECT_EQ(engine_.FirstUnconfirmed(), Step());
  Operation push = PushAll();
  push.group = GroupIdentity{.group = GroupId(9), .generation = 1, .step = Step(4)};
  Start(std::move(push));
  const std::vector<Message> sent = outbox_.TakeMessages();
  EXPECT_EQ(engine_.FirstUnconfirmed(), Step(4)) << "nobody has answered";
  Answer(sent[0], 1);
  Answer(sent[1], 1, kReceived);
  EXPECT_EQ(engine_.FirstUnconfirmed(), Step()) << "the head has it, if not for ever";
  ShowView(View(2, kServerA, kServerA));
  EXPECT_EQ(engine_.FirstUnconfirmed(), Step(4)) << "the new head may lack it";
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(engine_.FirstUnconfirmed(), Step(4));
  Answer(again[0], 1, kReceived);
  EXPECT_EQ(engine_.FirstUnconfirmed(), Step());
}

TEST_F(DurabilityTest, AReadFollowsWhatItsReaderPushed) {
  const GroupIdentity group{.group = GroupId(9), .generation = 1, .step = Step(4)};
  Operation push = PushAll();
  push.group = group;
  Start(std::move(push));
  for (const Message& message : outbox_.TakeMessages()) Answer(message, 1, kReceived);
  ShowView(View(2, kServerA, kServerA));
  const std::vector<Message> kept = After(absl::ZeroDuration());
  ASSERT_EQ(kept.size(), 1u);
  std::vector<float> values(2);
  for (const GroupId reader : {group.group, GroupId(8)}) {
    Start({.table = TableId(3),
           .first_shard = ShardIndex(1),
           .shard_count = 1,
           .values = values,
           .read = {.step = Step(4), .group = reader},
           .deadline = kStart + absl::Seconds(10)});
  }
  const std::vector<Message> others = outbox_.TakeMessages();
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].envelope.pull_request().read().group(), 8u);
  Answer(kept[0], 1, kReceived);
  const std::vector<Message> own = outbox_.TakeMessages();
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].envelope.pull_request().read().group(), 9u);
}

TEST_F(DurabilityTest, ALostMessageOfAKeptPushHoldsOthersUpNoLongerThanAnyRequest) {
  PushReceived();
  ShowView(View(2, kServerA, kServerA));
  EXPECT_EQ(After(absl::ZeroDuration()).size(), 1u);
  EXPECT_EQ(After(absl::Milliseconds(1001)).size(), 1u);
}

TEST_F(DurabilityTest, PushesOfAnotherProducerAreNotHeldBack) {
  PushReceived();
  ShowView(View(2, kServerA, kServerA));
  After(absl::ZeroDuration());
  Operation push = PushAll();
  push.group = GroupIdentity{.group = GroupId(9), .generation = 1, .step = Step(4)};
  Start(std::move(push));
  EXPECT_EQ(outbox_.TakeMessages().size(), 2u);
}

TEST_F(DurabilityTest, ALateAnswerOfAReplacedHeadSaysNothingOfTheNextOne) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  ShowView(View(2, kServerA, kServerA));
  EXPECT_EQ(After(absl::ZeroDuration()).size(), 1u);
  // Received by the old head only: the new one is still asked, before anything later.
  Answer(sent[1], 1, kReceived);
  const std::vector<Message> kept = After(absl::ZeroDuration());
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].to(), (Address{NodeId(kServerA), 1}));
  EXPECT_EQ(SequenceOf(kept[0]), 1u);
  Answer(sent[1], 1, kReceived);
  Start(PushAll());
  EXPECT_EQ(outbox_.TakeMessages().size(), 1u) << "only that of shard 0";
  Answer(kept[0], 1, kReceived);
  EXPECT_EQ(outbox_.TakeMessages().size(), 1u);
}

// The reply was in flight when the head was replaced, and arrived before the push could leave for
// the new head.
TEST_F(DurabilityTest, ALateReplyOfAReplacedHeadDoesNotKeepAPushFromTheNewOne) {
  const std::vector<Message> sent = PushReceived();
  ShowView(View(2, kServerA, kServerA));
  Answer(sent[1], 1, kReceived);
  const std::vector<Message> again = outbox_.TakeMessages();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].to(), (Address{NodeId(kServerA), 1}));
  EXPECT_EQ(again[0].frames.size(), 1u);
  Start(PushAll());
  EXPECT_EQ(outbox_.TakeMessages().size(), 1u) << "the later push of shard 1 waits";
}

TEST_F(DurabilityTest, AsksAgainLaterInCaseTheSecondAnswerWasLost) {
  PushReceived();
  EXPECT_TRUE(After(absl::Seconds(1)).empty());
  const std::vector<Message> again = After(absl::Seconds(2));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].to(), (Address{NodeId(kServerB), 1}));
  EXPECT_TRUE(again[0].frames.empty()) << "it has the bytes";
  EXPECT_EQ(engine_.bytes_in_flight(), 0u);
  Answer(again[0], 1, kReceived);
  EXPECT_TRUE(After(absl::Seconds(3)).empty()) << "backs off";
  EXPECT_EQ(After(absl::Seconds(2)).size(), 1u);
}

// A buffered table's buffer may take minutes to fill.
TEST_F(DurabilityTest, APushThatIsHeldForLongTravelsOnce) {
  PushReceived();
  size_t questions = 0;
  for (int seconds = 0; seconds < 600; ++seconds) {
    for (const Message& message : After(absl::Seconds(1))) {
      EXPECT_TRUE(message.frames.empty());
      ++questions;
      if (seconds % 3 != 0) Answer(message, 1, kReceived);
    }
  }
  EXPECT_GT(questions, 30u);
  EXPECT_EQ(engine_.bytes_in_flight(), 0u);
}

// The server was head, held the push in a buffer, and lost the role for a while; this client did
// not notice.
TEST_F(DurabilityTest, SendsTheBytesToAServerThatDoesNotHaveThemAnyMore) {
  PushReceived();
  const std::vector<Message> question = After(absl::Seconds(3));
  ASSERT_EQ(question.size(), 1u);
  Refuse(question[0], absl::UnavailableError("not received yet"));
  Start(PushAll());
  EXPECT_EQ(outbox_.TakeMessages().size(), 1u) << "shard 1's later push waits for the earlier one";
  std::vector<Message> again = After(absl::Milliseconds(10));
  std::erase_if(again, [](const Message& message) { return message.frames.empty(); });
  ASSERT_EQ(again.size(), 1u);
  EXPECT_THAT(again[0].frames[0].As<float>(), ElementsAre(5, 6));
  EXPECT_EQ(engine_.bytes_in_flight(), 16u + 8u);
  // Its reply is late: the bytes are in flight.
  const std::vector<Message> asked = After(absl::Milliseconds(1200));
  EXPECT_EQ(std::count_if(asked.begin(), asked.end(),
                          [](const Message& message) { return !message.frames.empty(); }),
            0);
  Answer(again[0], 1, kReceived);
  EXPECT_EQ(outbox_.TakeMessages().size(), 1u);
}

TEST_F(DurabilityTest, WaitsOutRefusalsOfAKeptPush) {
  const std::vector<Message> sent = PushReceived();
  ShowView(View(2, kServerA, kServerA));
  Refuse(After(absl::ZeroDuration())[0], absl::UnavailableError("my view is on its way"));
  EXPECT_EQ(engine_.bytes_in_flight(), 0u);
  const std::vector<Message> again = After(absl::Milliseconds(10));
  ASSERT_EQ(again.size(), 1u);
  Answer(again[0], 1);
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
}

// Found by simulation: the push counted as refused for good.
TEST_F(DurabilityTest, WaitsForAChainThatTakesLongerThanATry) {
  const std::vector<Message> sent = PushReceived();
  ShowView(View(2, kServerA, kServerA));
  Refuse(After(absl::ZeroDuration())[0], absl::DeadlineExceededError("not acknowledged yet"));
  EXPECT_EQ(engine_.undurable_pushes(), 1u);
  EXPECT_EQ(After(absl::Seconds(1)).size(), 1u);
}

// Found by simulation: the receipt counted as a reply without the values.
TEST_F(DurabilityTest, AsksAgainForTheValuesWhenOnlyTheReceiptHasCome) {
  std::vector<float> values(6);
  Operation push = PushAll();
  push.values = values;
  Start(std::move(push));
  const std::vector<Message> sent = outbox_.TakeMessages();
  Answer(sent[0], 1);
  EXPECT_TRUE(results_.empty());
  const std::vector<Message> again = After(absl::Milliseconds(10));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].envelope.push_request().read().wanted());
  EXPECT_EQ(again[0].envelope.push_request().id().SerializeAsString(),
            sent[0].envelope.push_request().id().SerializeAsString());
}

TEST_F(DurabilityTest, FlushWaitsUntilEverythingBeforeIsDurable) {
  Flush(absl::Seconds(5));
  EXPECT_THAT(flushed_, ElementsAre(absl::OkStatus()));
  flushed_.clear();
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  Flush(absl::Seconds(5));
  Start(PushAll());
  Answer(sent[0], 1);
  Answer(sent[1], 1, kReceived);
  EXPECT_TRUE(flushed_.empty());
  Answer(sent[1], 2);
  EXPECT_THAT(flushed_, ElementsAre(absl::OkStatus())) << "the later push is not waited for";
}

TEST_F(DurabilityTest, FlushOfWhatWasReceivedDoesNotWaitForAnswers) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  Answer(sent[1], 1, kReceived);
  Flush(absl::Seconds(5), RequestEngine::FlushScope::kReceived);
  EXPECT_TRUE(flushed_.empty());
  Answer(sent[1], 1);
  EXPECT_THAT(flushed_, ElementsAre(absl::OkStatus()));
}

TEST_F(DurabilityTest, FlushAsksTheHeadAtOnceNotToLetThePushWait) {
  const std::vector<Message> sent = PushReceived();
  EXPECT_FALSE(IsFlush(sent[1]));
  Flush(absl::Seconds(5));
  const std::vector<Message> asked = outbox_.TakeMessages();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].to(), (Address{NodeId(kServerB), 1}));
  EXPECT_EQ(asked[0].envelope.push_request().id().SerializeAsString(),
            sent[1].envelope.push_request().id().SerializeAsString());
  EXPECT_TRUE(asked[0].frames.empty());
  EXPECT_TRUE(IsFlush(asked[0]));
  EXPECT_TRUE(flushed_.empty());
  Answer(asked[0], 1);
  EXPECT_THAT(flushed_, ElementsAre(absl::OkStatus()));
  EXPECT_TRUE(After(absl::Minutes(1)).empty());
}

TEST_F(DurabilityTest, FlushAsksForAPushAsSoonAsItIsReceivedButNotForLaterOnes) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  Flush(absl::Seconds(5));
  EXPECT_TRUE(outbox_.TakeMessages().empty());
  Start(PushAll());
  const std::vector<Message> later = outbox_.TakeMessages();
  Answer(later[1], 1, kReceived);
  EXPECT_TRUE(outbox_.TakeMessages().empty());
  Answer(sent[1], 1, kReceived);
  const std::vector<Message> asked = outbox_.TakeMessages();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(SequenceOf(asked[0]), 1u);
  EXPECT_TRUE(IsFlush(asked[0]));
  Answer(asked[0], 1);
  for (const Message& message : After(absl::Seconds(3))) EXPECT_FALSE(IsFlush(message));
}

// A server of an older version does not know the request; a lost message is repeated soon, because
// the caller waits.
TEST_F(DurabilityTest, FlushIsRepeatedUntilThePushIsDurable) {
  PushReceived();
  Flush(absl::Minutes(1));
  EXPECT_EQ(outbox_.TakeMessages().size(), 1u);
  EXPECT_TRUE(After(absl::Milliseconds(900)).empty());
  const std::vector<Message> again = After(absl::Milliseconds(200));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].frames.empty());
  EXPECT_TRUE(IsFlush(again[0]));
  Answer(again[0], 1, kReceived);
  EXPECT_TRUE(After(absl::Seconds(1)).empty()) << "an answer is not repeated at once";
  const std::vector<Message> later = After(absl::Seconds(9));
  ASSERT_EQ(later.size(), 1u);
  EXPECT_TRUE(IsFlush(later[0]));
}

TEST_F(DurabilityTest, FlushReachesAServerThatLacksThePushWithItsBytes) {
  for (const bool is_new_head : {false, true}) {
    PushReceived();
    Flush(absl::Minutes(1));
    const std::vector<Message> asked = outbox_.TakeMessages();
    ASSERT_EQ(asked.size(), 1u);
    if (is_new_head) {
      ShowView(View(2, kServerA, kServerA));
    } else {
      Refuse(asked[0], absl::UnavailableError("not received yet"));
    }
    const std::vector<Message> again = After(absl::Milliseconds(10));
    ASSERT_EQ(again.size(), 1u);
    EXPECT_THAT(again[0].frames[0].As<float>(), ElementsAre(5, 6));
    EXPECT_TRUE(IsFlush(again[0]));
    Answer(again[0], 1);
    EXPECT_THAT(flushed_, ElementsAre(absl::OkStatus()));
    flushed_.clear();
  }
}

TEST_F(DurabilityTest, FlushNamesWhatIsLeftAtItsDeadline) {
  PushReceived();
  Flush(absl::Milliseconds(100));
  After(absl::ZeroDuration());
  EXPECT_EQ(engine_.NextWake(), now_ + absl::Milliseconds(100));
  After(absl::Milliseconds(100));
  ASSERT_EQ(flushed_.size(), 1u);
  EXPECT_EQ(flushed_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(flushed_[0].message()), HasSubstr("table=weights shard=1"));
  EXPECT_THAT(std::string(flushed_[0].message()), HasSubstr("server-1"));
}

TEST_F(DurabilityTest, TellsOfPushesThatWereLostWithTheContent) {
  PushReceived();
  ShowView(View(2, kServerA, kServerA, {.generation = 2}));
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
  EXPECT_EQ(engine_.counters().lost_pushes, 1u);
  EXPECT_TRUE(After(absl::Minutes(1)).empty()) << "its history is no more";
  Flush(absl::Seconds(1));
  Flush(absl::Seconds(1));
  ASSERT_EQ(flushed_.size(), 2u);
  EXPECT_EQ(flushed_[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(flushed_[0].message()), HasSubstr("shard=1"));
  EXPECT_TRUE(flushed_[1].ok()) << "it was told";
}

TEST_F(DurabilityTest, DropsWhatANewHeadRefusesForGood) {
  PushReceived();
  ShowView(View(2, kServerA, kServerA));
  Refuse(After(absl::ZeroDuration())[0], absl::AbortedError("an older incarnation"));
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
  EXPECT_EQ(engine_.counters().lost_pushes, 1u);
  EXPECT_EQ(engine_.bytes_in_flight(), 0u);
  Flush(absl::Seconds(1));
  ASSERT_EQ(flushed_.size(), 1u);
  EXPECT_EQ(flushed_[0].code(), absl::StatusCode::kAborted) << "it may be in";
  EXPECT_THAT(std::string(flushed_[0].message()), HasSubstr("1 pushes may have been lost"));
}

// Found by simulation: the group's push was dropped, and lost with the head that held it; the other
// groups waited for that step forever.
TEST_F(DurabilityTest, AGroupsPushGoesOnUnderItsNewestGeneration) {
  PushReceivedOfGroup(1);
  ShowView(View(2, kServerA, kServerB, {.group_generation = 3}));
  const std::vector<Message> question = After(absl::Seconds(3));
  ASSERT_EQ(question.size(), 1u);
  EXPECT_TRUE(question[0].frames.empty());
  EXPECT_THAT(GenerationsOf(question[0]), Pair(3, 3));
  EXPECT_EQ(SequenceOf(question[0]), 4u) << "still the same step";
  Answer(question[0], 1, kReceived);
  ShowView(View(3, kServerA, kServerA, {.group_generation = 3}));
  const std::vector<Message> again = After(absl::ZeroDuration());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_THAT(GenerationsOf(again[0]), Pair(3, 3));
  EXPECT_THAT(again[0].frames[0].As<float>(), ElementsAre(5, 6));
}

TEST_F(DurabilityTest, AGroupsPushThatANewerGenerationOvertookIsSentAgainUnderIt) {
  PushReceivedOfGroup(1);
  const std::vector<Message> question = After(absl::Seconds(3));
  ASSERT_EQ(question.size(), 1u);
  // The server's view is newer than this client's, so the reason of the refusal is not known here
  // yet.
  RefuseOvertaken(question[0], 2);
  EXPECT_EQ(engine_.undurable_pushes(), 1u);
  const std::vector<Message> unchanged = After(absl::Milliseconds(10));
  ASSERT_EQ(unchanged.size(), 1u);
  EXPECT_THAT(GenerationsOf(unchanged[0]), Pair(1, 1));
  // The refusal of the push that was sent before the view arrived.
  ShowView(View(2, kServerA, kServerB, {.group_generation = 2}));
  RefuseOvertaken(unchanged[0], 2);
  EXPECT_EQ(engine_.undurable_pushes(), 1u);
  const std::vector<Message> again = After(absl::Milliseconds(10));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_THAT(GenerationsOf(again[0]), Pair(2, 2));
  EXPECT_EQ(engine_.counters().lost_pushes, 0u);
  // Under the newest generation it is refused for good.
  RefuseOvertaken(again[0], 2);
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
  EXPECT_EQ(engine_.counters().lost_pushes, 1u);
}

TEST_F(DurabilityTest, PushesThatAreLostForSureAreNamedFirst) {
  PushReceived();
  PushReceived();
  ShowView(View(2, kServerA, kServerA));
  Refuse(After(absl::ZeroDuration())[0], absl::AbortedError("an older incarnation"));
  Refuse(After(absl::Minutes(1))[0], absl::InvalidArgumentError("no such shard"));
  Flush(absl::Seconds(1));
  ASSERT_EQ(flushed_.size(), 1u);
  EXPECT_EQ(flushed_[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(flushed_[0].message()), HasSubstr("2 pushes were lost"));
  EXPECT_THAT(std::string(flushed_[0].message()), HasSubstr("no such shard"));
}

TEST_F(DurabilityTest, NoPushLeavesTheOldestOneBehindTheShardsMemory) {
  // One push of shard 0 is lost on its way, and all later ones are answered at once.
  std::vector<Message> sent;
  for (size_t i = 0; i <= kDedupWindow; ++i) {
    Start(PushAll());
    for (Message& message : outbox_.TakeMessages()) {
      message.frames.clear();
      if (sent.empty()) {
        sent.push_back(std::move(message));
      } else {
        const bool of_first_shard = message.envelope.push_request().id().shard() == 0;
        EXPECT_LE(SequenceOf(message), kDedupWindow + (of_first_shard ? 0 : 1));
        Answer(message, 1);
      }
    }
  }
  EXPECT_EQ(results_.size(), kDedupWindow - 1) << "the first and the last push have not ended";
  EXPECT_TRUE(After(absl::ZeroDuration()).empty());
  // Its repeat is answered, and the last one follows.
  Answer(sent[0], 1);
  std::vector<Message> last = outbox_.TakeMessages();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(SequenceOf(last[0]), kDedupWindow + 1);
  last[0].frames.clear();
  Answer(last[0], 1);
  EXPECT_EQ(results_.size(), kDedupWindow + 1);
}

// Each is queried at a time of its own, and none costs a look at the others.
TEST_F(DurabilityTest, ManyKeptPushesAreQueriedInTheirTime) {
  constexpr size_t kPushes = 4000;
  for (size_t i = 0; i < kPushes; ++i) {
    Start(PushAll());
    for (Message& message : outbox_.TakeMessages()) {
      message.frames.clear();
      Answer(message, 1, kReceived);
    }
  }
  ASSERT_EQ(engine_.undurable_pushes(), 2 * kPushes);
  std::set<uint64_t> queried;
  for (int ms = 0; ms < 2500; ++ms) {
    for (Message& query : After(absl::Milliseconds(1))) {
      EXPECT_TRUE(queried.insert(query.envelope.header().request_id()).second);
      Answer(query, 2);
    }
  }
  EXPECT_EQ(queried.size(), 2 * kPushes);
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
}

TEST_F(DurabilityTest, PlantedBugForgets) {
  PlantBug(PlantedBug::kForgetUndurablePushes);
  PushReceived();
  EXPECT_EQ(engine_.undurable_pushes(), 0u);
  PlantBug(PlantedBug::kSequenceWraps);
  std::vector<uint64_t> sequences;
  for (int i = 0; i < 70; ++i) {
    Start(PushAll());
    for (const Message& message : outbox_.TakeMessages()) Answer(message, 1);
    sequences.push_back(i);
  }
  Start(PushAll());
  EXPECT_LE(outbox_.TakeMessages()[0].envelope.push_request().id().sequence(), 63u);
  PlantBug(PlantedBug::kNone);
}

// A table of one shard that fills the client's memory for undurable pushes.
class LargePushTest : public ::testing::Test {
 protected:
  static constexpr size_t kElements = 4 << 20;

  LargePushTest() : engine_({.incarnation = Incarnation(77), .seed = 1}, next_request_id_) {
    proto::ClusterView view = View(1, kServerA, kServerB)->proto();
    proto::Table& table = *view.mutable_tables(0);
    table.mutable_spec()->set_shape(0, kElements);
    table.mutable_shards()->RemoveLast();
    table.mutable_shards(0)->set_element_count(kElements);
    engine_.SetView(kStart, NodeId(5), *ClusterView::Make(std::move(view)), outbox_);
  }
  // Answers the newest push.
  void Answer(const Message& request, bool durable) {
    Message reply = ReplyTo(request);
    reply.envelope.mutable_push_reply()->set_durable(durable);
    engine_.Receive(kStart, reply, outbox_);
  }
  Message Push() {
    const absl::Status started =
        engine_.Start(kStart,
                      {.table = TableId(3),
                       .gradient = gradient_,
                       .deadline = kStart + absl::Seconds(10),
                       .done = [this](absl::Time, const OperationResult& result,
                                      Outbox&) { results_.push_back(result); }},
                      outbox_);
    EXPECT_TRUE(started.ok()) << started;
    Message message = std::move(outbox_.TakeMessages().at(0));
    message.frames.clear();
    return message;
  }

  uint64_t next_request_id_ = 1;
  Outbox outbox_;
  RequestEngine engine_;
  std::vector<float> gradient_ = std::vector<float>(kElements);
  std::vector<OperationResult> results_;
};

TEST_F(LargePushTest, BeyondTheLimitAPushEndsWhenItIsDurable) {
  std::vector<Message> kept;
  while (engine_.undurable_bytes() + kElements * sizeof(float) <= kUndurableBytesPerClientMax) {
    kept.push_back(Push());
    Answer(kept.back(), false);
    ASSERT_EQ(results_.size(), kept.size());
  }
  const size_t full = engine_.undurable_bytes();
  const Message patient = Push();
  Answer(patient, false);
  const Message late = Push();
  Answer(late, false);
  EXPECT_EQ(results_.size(), kept.size()) << "neither ends while it is not durable";
  EXPECT_EQ(engine_.undurable_bytes(), full);
  Answer(patient, true);
  ASSERT_EQ(results_.size(), kept.size() + 1);
  EXPECT_TRUE(results_.back().durable);
  engine_.Wake(kStart + absl::Seconds(10), outbox_);
  outbox_.TakeMessages();
  engine_.Wake(kStart + absl::Seconds(10), outbox_);
  ASSERT_EQ(results_.size(), kept.size() + 2);
  EXPECT_EQ(results_.back().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(engine_.undurable_pushes(), kept.size());
  // The end of all operations releases all memory.
  engine_.FailAll(kStart, absl::CancelledError("closed"), outbox_);
  EXPECT_EQ(engine_.undurable_bytes(), 0u);
  EXPECT_EQ(engine_.operations(), 0u);
  EXPECT_EQ(engine_.bytes_in_flight(), 0u);
}

// The pushes with which its buffer would be full may be the next ones of the program that waits.
TEST_F(LargePushTest, BeyondTheLimitAPushDoesNotWaitForOthersInABuffer) {
  while (engine_.undurable_bytes() + kElements * sizeof(float) <= kUndurableBytesPerClientMax) {
    Answer(Push(), false);
  }
  const Message patient = Push();
  Answer(patient, false);
  outbox_.TakeMessages();
  engine_.Wake(kStart + absl::Seconds(4), outbox_);
  size_t queries = 0;
  for (const Message& query : outbox_.TakeMessages()) {
    const proto::PushRequest& push = query.envelope.push_request();
    const bool is_patient = push.id().sequence() == patient.envelope.push_request().id().sequence();
    EXPECT_EQ(push.flush(), is_patient) << push.id().sequence();
    queries += is_patient;
  }
  EXPECT_EQ(queries, 1u);
}

}  // namespace
}  // namespace covey::client
