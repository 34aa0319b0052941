// SPDX-License-Identifier: Apache-2.0
#include "client/engine/request_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/testing/request_engine_fixture.h"
#include "common/tensor/codec.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RequestEngineTest, EncodesEachShardOnceInTheAskedFormat) {
  for (const WireFormat format :
       {WireFormat::kFloat16, WireFormat::kBfloat16, WireFormat::kInt8Block}) {
    gradient_ = {0.1f, -2.03f, 3, 4, 500, -0.6f};
    Operation operation = PushAll();
    operation.format = format;
    Start(std::move(operation));
    const std::vector<Message> sent = outbox_.TakeMessages();
    ASSERT_EQ(sent.size(), 2u);
    for (const auto& [message, first, count] :
         {std::tuple(sent[0], 0, 4), std::tuple(sent[1], 4, 2)}) {
      EXPECT_EQ(static_cast<WireFormat>(message.envelope.push_request().format()), format);
      std::vector<uint8_t> expected(EncodedBytes(format, count));
      Encode(format, std::span(gradient_).subspan(first, count), expected);
      EXPECT_THAT(message.frames[0].bytes(), ::testing::ElementsAreArray(expected));
    }
    EXPECT_EQ(engine_.bytes_in_flight(), EncodedBytes(format, 4) + EncodedBytes(format, 2));
    // A retry sends exactly the bytes that were sent before.
    Refuse(sent[0], absl::UnavailableError("not now"));
    engine_.Wake(kStart + absl::Seconds(1), outbox_);
    const std::vector<Message> again = outbox_.TakeMessages();
    ASSERT_FALSE(again.empty());
    EXPECT_EQ(again[0].frames[0].data(), sent[0].frames[0].data());
    for (const Message& message : sent) Answer(message, 1);
    EXPECT_TRUE(results_.back().status.ok());
    EXPECT_EQ(engine_.operations(), 0u) << "waits for bytes that are not the caller's";
    EXPECT_EQ(engine_.bytes_in_flight(), 0u);
  }
}

TEST_F(RequestEngineTest, KeepsWhatAnEncodingLosesForTheNextPush) {
  std::vector<float> residual(6, 0.0f);
  std::vector<float> received(6, 0.0f);
  std::vector<float> pushed(6, 0.0f);
  gradient_ = {1, 0.1f, 0.01f, 0.001f, 1, 0.003f};
  for (int i = 0; i < 50; ++i) {
    Operation operation = PushAll();
    operation.format = WireFormat::kInt8Block;
    operation.residual = residual;
    Start(std::move(operation));
    const std::vector<Message> sent = outbox_.TakeMessages();
    ASSERT_EQ(sent.size(), 2u);
    DecodeAndAdd(WireFormat::kInt8Block, sent[0].frames[0].bytes(), std::span(received).first(4));
    DecodeAndAdd(WireFormat::kInt8Block, sent[1].frames[0].bytes(), std::span(received).last(2));
    AddInto(pushed, gradient_);
    for (const Message& message : sent) Answer(message, 1);
  }
  // Without feedback the smallest values would be lost every time.
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(received[i] + residual[i], pushed[i], 1e-4) << i;
  EXPECT_NEAR(received[3], 0.05, 0.01);

  // Once in float32, nothing is left.
  Operation flush = PushAll();
  flush.residual = residual;
  std::vector<float> all = gradient_;
  AddInto(all, residual);
  Start(std::move(flush));
  const std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(i < 4 ? sent[0].frames[0].As<float>()[i] : sent[1].frames[0].As<float>()[i - 4],
              all[i]);
  }
  EXPECT_EQ(residual, std::vector<float>(6, 0.0f));

  Operation unfit = PushAll();
  unfit.residual = std::span(residual).first(5);
  EXPECT_EQ(engine_.Start(kStart, std::move(unfit), outbox_).code(),
            absl::StatusCode::kInvalidArgument);
  Operation forgetful = PushAll();
  forgetful.format = WireFormat::kTopBlock;
  EXPECT_THAT(engine_.Start(kStart, std::move(forgetful), outbox_).message(),
              HasSubstr("topk leaves out most of a gradient"));
  // A step without a gradient loses nothing.
  std::vector<float> values(6);
  Operation fetch = PushAll();
  fetch.gradient = {};
  fetch.values = values;
  fetch.format = WireFormat::kTopBlock;
  EXPECT_TRUE(engine_.Start(kStart, std::move(fetch), outbox_).ok());
  forgetful = PushAll();
  forgetful.format = WireFormat::kTopBlock;
  forgetful.residual = residual;
  EXPECT_TRUE(engine_.Start(kStart, std::move(forgetful), outbox_).ok());
}

TEST_F(RequestEngineTest, TellsWhenAPushWasTooStale) {
  Start(PushAll());
  std::vector<Message> sent = outbox_.TakeMessages();
  for (Message& message : sent) message.frames.clear();
  Message reply = ReplyTo(sent[0]);
  reply.envelope.mutable_push_reply()->set_discarded(true);
  engine_.Receive(kStart, reply, outbox_);
  Answer(sent[1], 1);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].status.ok());
  EXPECT_TRUE(results_[0].discarded);
}

// A worker, a node that the view lacks, and another process with the number of the server.
TEST_F(RequestEngineTest, OnlyServersOfTheViewAnswer) {
  engine_.SetView(kStart, NodeId(5), View(2, kServerA, kServerB, {.group_generation = 1}), outbox_);
  Start(PushAll());
  std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  for (const Message& message : sent) {
    Message forged = MakeReply(message);
    forged.envelope.mutable_push_reply()->set_durable(true);
    for (const uint64_t node : {uint64_t{0}, kServerB + 1, uint64_t{99}}) {
      forged.envelope.mutable_header()->set_node(node);
      engine_.Receive(kStart, forged, outbox_);
    }
    forged.envelope.mutable_header()->set_node(message.envelope.to_node());
    forged.envelope.mutable_header()->set_incarnation(6);
    engine_.Receive(kStart, forged, outbox_);
  }
  EXPECT_EQ(engine_.counters().strangers, 8u);
  for (Message& message : sent) message.frames.clear();
  engine_.Wake(kStart, outbox_);
  EXPECT_TRUE(results_.empty());
  for (const Message& message : sent) Answer(message, 4);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].status.ok());
}

TEST_F(RequestEngineTest, CutsAPushByShardsAndSendsTheCallersOwnMemory) {
  Start(PushAll());
  std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].to(), (Address{NodeId(kServerA), 1}));
  EXPECT_EQ(sent[1].to(), (Address{NodeId(kServerB), 1}));
  EXPECT_EQ(sent[0].frames[0].data(), reinterpret_cast<const uint8_t*>(gradient_.data()));
  EXPECT_EQ(sent[1].frames[0].As<float>()[0], 5.0f);
  EXPECT_EQ(sent[1].envelope.push_request().samples(), 8u);
  EXPECT_EQ(sent[1].envelope.push_request().id().producer_incarnation(), 77u);
  EXPECT_EQ(outbox_.TakeRoutes().size(), 2u);
  Answer(sent[0], 4);
  Answer(sent[1], 9);
  EXPECT_TRUE(results_.empty()) << "done while its memory is still referenced by " << sent.size()
                                << " messages";
  sent.clear();
  engine_.Wake(kStart, outbox_);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].status.ok());
  EXPECT_EQ(results_[0].version, Version(4));
}

TEST_F(RequestEngineTest, RepeatsAnUnansweredPushUnderTheSameIdentity) {
  Start(PushAll());
  const std::vector<Message> first = outbox_.TakeMessages();
  engine_.Wake(kStart + absl::Milliseconds(900), outbox_);
  EXPECT_TRUE(outbox_.TakeMessages().empty());
  engine_.Wake(kStart + absl::Milliseconds(1200), outbox_);
  const std::vector<Message> second = outbox_.TakeMessages();
  ASSERT_EQ(second.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(second[i].envelope.header().request_id(), first[i].envelope.header().request_id());
    EXPECT_EQ(second[i].envelope.push_request().id().SerializeAsString(),
              first[i].envelope.push_request().id().SerializeAsString());
  }
}

TEST_F(RequestEngineTest, GivesEachPushOfAShardItsOwnSequence) {
  Start(PushAll());
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  EXPECT_EQ(sent[0].envelope.push_request().id().sequence(), 1u);
  EXPECT_EQ(sent[2].envelope.push_request().id().sequence(), 2u);
}

TEST_F(RequestEngineTest, PushesForAGroupUnderTheGroupsStep) {
  Operation operation = PushAll();
  operation.group = GroupIdentity{.group = GroupId(2), .generation = 6, .step = Step(41)};
  Start(std::move(operation));
  const proto::PushId id = outbox_.TakeMessages()[0].envelope.push_request().id();
  EXPECT_EQ(id.producer_kind(), proto::PushId::GROUP);
  EXPECT_EQ(id.producer(), 2u);
  EXPECT_EQ(id.producer_incarnation(), 6u);
  EXPECT_EQ(id.sequence(), 41u);
}

TEST_F(RequestEngineTest, BacksOffWhenRefusedAndFollowsANewerView) {
  Start(PushAll());
  const std::vector<Message> sent = outbox_.TakeMessages();
  outbox_.TakeRoutes();
  Refuse(sent[0], absl::FailedPreconditionError("moved"));
  EXPECT_TRUE(outbox_.TakeMessages().empty());
  engine_.SetView(kStart, NodeId(5), View(2, kServerB, kServerB), outbox_);
  engine_.Wake(engine_.NextWake(), outbox_);
  const std::vector<Message> again = outbox_.TakeMessages();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].to(), (Address{NodeId(kServerB), 1}));
  EXPECT_EQ(again[0].envelope.header().request_id(), sent[0].envelope.header().request_id());
}

TEST_F(RequestEngineTest, EndsOnARefusalThatRetryingCannotMend) {
  Start(PushAll());
  {
    const std::vector<Message> sent = outbox_.TakeMessages();
    Refuse(sent[1], absl::InvalidArgumentError("NaN at element 5"));
  }
  engine_.Wake(kStart, outbox_);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine_.bytes_in_flight(), 0u);
}

TEST_F(RequestEngineTest, DeadlineNamesServerAndLastRefusalAndLetsTheConnectionGo) {
  Start(PushAll());
  std::vector<Message> sent = outbox_.TakeMessages();
  outbox_.TakeRoutes();
  Answer(sent[0], 1);
  Refuse(sent[1], absl::UnavailableError("draining"));
  engine_.Wake(kStart + absl::Seconds(10), outbox_);
  EXPECT_TRUE(results_.empty());
  EXPECT_THAT(outbox_.TakeRoutes(), ::testing::Contains(std::pair<Address, std::string>(
                                        Address{NodeId(kServerB), 1}, "")));
  sent.clear();
  outbox_.TakeMessages();
  engine_.Wake(kStart + absl::Seconds(10), outbox_);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(results_[0].status.message()), HasSubstr("server-1"));
  EXPECT_THAT(std::string(results_[0].status.message()), HasSubstr("draining"));
}

TEST_F(RequestEngineTest, PullFillsTheCallersSpan) {
  std::vector<float> values(6);
  Start({.table = TableId(3),
         .values = values,
         .done = [this](absl::Time, const OperationResult& result, Outbox&) {
           results_.push_back(result);
         }});
  const std::vector<Message> sent = outbox_.TakeMessages();
  Answer(sent[1], 2);
  Answer(sent[0], 3);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_THAT(values, ElementsAre(3, 3, 3, 3, 2, 2));
  Answer(sent[0], 9);  // A second reply to the same request changes nothing.
  EXPECT_THAT(values, ElementsAre(3, 3, 3, 3, 2, 2));
}

TEST_F(RequestEngineTest, TakesValuesInTheFormatThatTheServerSays) {
  for (const WireFormat format :
       {WireFormat::kBfloat16, WireFormat::kInt8Block, WireFormat::kFloat16Block}) {
    std::vector<float> values(6);
    Start({.table = TableId(3),
           .values = values,
           .value_format = format,
           .done = [this](absl::Time, const OperationResult& result, Outbox&) {
             results_.push_back(result);
           }});
    const std::vector<Message> sent = outbox_.TakeMessages();
    ASSERT_EQ(sent.size(), 2u);
    const std::vector<float> held = {0.1f, -2.03f, 3, 500.25f};
    std::vector<float> expected(4);
    Message reply = ReplyTo(sent[0]);
    EXPECT_EQ(sent[0].envelope.pull_request().read().value_format(), ToProto(format));
    reply.envelope.mutable_pull_reply()->mutable_state()->set_version(1);
    reply.envelope.mutable_pull_reply()->set_value_format(ToProto(format));
    Buffer frame = Buffer::Allocate(EncodedBytes(format, 4));
    Encode(format, held, {frame.MutableData(), frame.size()});
    Decode(format, frame.bytes(), expected);
    reply.frames.push_back(std::move(frame));
    SetFrameChecksums(reply);
    engine_.Receive(now_, reply, outbox_);
    // This server is of an earlier version, and sends float32.
    Answer(sent[1], 7);
    EXPECT_TRUE(results_.back().status.ok()) << results_.back().status;
    expected.insert(expected.end(), {7, 7});
    EXPECT_EQ(values, expected) << WireFormatName(format);
  }
}

TEST_F(RequestEngineTest, ValuesOfAnotherFormatThanTheServerSaysAreAnError) {
  std::vector<float> values(6);
  Start({.table = TableId(3),
         .values = values,
         .value_format = WireFormat::kBfloat16,
         .done = [this](absl::Time, const OperationResult& result, Outbox&) {
           results_.push_back(result);
         }});
  const std::vector<Message> sent = outbox_.TakeMessages();
  Message reply = ReplyTo(sent[0]);
  reply.envelope.mutable_pull_reply()->mutable_state()->set_version(1);
  // Not the format that was asked for, so the frame must be float32.
  reply.envelope.mutable_pull_reply()->set_value_format(proto::WIRE_FLOAT16);
  reply.frames.push_back(Buffer::Allocate(EncodedBytes(WireFormat::kFloat16, 4)));
  SetFrameChecksums(reply);
  engine_.Receive(kStart, reply, outbox_);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(values, ::testing::Each(0.0f));
}

TEST_F(RequestEngineTest, AWrongAnswerIsAnErrorNotAnOverrun) {
  std::vector<float> values(6);
  Start({.table = TableId(3),
         .values = values,
         .done = [this](absl::Time, const OperationResult& result, Outbox&) {
           results_.push_back(result);
         }});
  const std::vector<Message> sent = outbox_.TakeMessages();
  Message reply = ReplyTo(sent[0]);
  reply.envelope.mutable_pull_reply();
  reply.frames.push_back(Buffer::Allocate(400));
  engine_.Receive(kStart, reply, outbox_);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status.code(), absl::StatusCode::kInternal);
}

TEST_F(RequestEngineTest, RefusesWhatCannotFit) {
  Operation operation = PushAll();
  operation.table = TableId(4);
  EXPECT_EQ(engine_.Start(kStart, operation, outbox_).code(), absl::StatusCode::kNotFound);
  operation = PushAll();
  operation.gradient = operation.gradient.first(5);
  EXPECT_EQ(engine_.Start(kStart, operation, outbox_).code(), absl::StatusCode::kInvalidArgument);
  operation = PushAll();
  operation.samples = 0;
  EXPECT_EQ(engine_.Start(kStart, operation, outbox_).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RequestEngineTest, RefusesFormatsInWhichNothingIsRead) {
  std::vector<float> values(6);
  std::vector<float> arrays(12);
  const Operation topk{
      .table = TableId(3), .values = values, .value_format = WireFormat::kTopBlock};
  const Operation state{
      .table = TableId(3), .values = arrays, .value_format = WireFormat::kBfloat16, .slots = 1};
  for (const auto& [operation, why] : {std::pair(topk, "topk: that leaves out most values"),
                                       std::pair(state, "state is read in float32")}) {
    const absl::Status refused = engine_.Start(kStart, operation, outbox_);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(why));
  }
}

class SmallBudgetTest : public RequestEngineTest {
 protected:
  SmallBudgetTest() : RequestEngineTest(20) {}
};

TEST_F(SmallBudgetTest, KeepsBytesOnTheWireWithinTheBudget) {
  Start(PushAll());  // 16 and 8 bytes
  std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(engine_.bytes_in_flight(), 16u);
  Answer(sent[0], 1);
  sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(engine_.bytes_in_flight(), 8u);
}

// Under bsp the values come only when all groups have pushed to the shard.
TEST_F(SmallBudgetTest, APushThatItsServerHoldsLeavesRoomForOthers) {
  std::vector<float> values(6);
  Operation operation = PushAll();
  operation.values = values;
  Start(std::move(operation));
  const std::vector<Message> held = outbox_.TakeMessages();
  ASSERT_EQ(held.size(), 1u);
  const std::vector<Message> asked = After(absl::Milliseconds(1200));
  ASSERT_EQ(asked.size(), 1u) << "no reply has come";
  Answer(asked[0], 1, kReceived);
  const std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].envelope.push_request().id().shard(), 1u);
  EXPECT_EQ(engine_.bytes_in_flight(), 8u);
  const std::vector<Message> again = After(absl::Milliseconds(3));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].envelope.push_request().id().shard(), 0u);
  EXPECT_TRUE(again[0].envelope.push_request().read().wanted());
  EXPECT_EQ(engine_.bytes_in_flight(), 8u) << "its server has the bytes";
  // The chain has another head, which lacks the push: its bytes count again, and they go at once,
  // because no request in flight is older.
  ShowView(View(2, kServerB, kServerB));
  const std::vector<Message> moved = After(absl::ZeroDuration());
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].frames.size(), 1u);
  EXPECT_EQ(engine_.bytes_in_flight(), 24u);
  engine_.FailAll(now_, absl::CancelledError("the test is over"), outbox_);
}

TEST_F(RequestEngineTest, OperationsOfAGroupWaitLongerWhileAnotherWorkerIsAway) {
  Operation operation = PushAll();
  operation.group = GroupIdentity{.group = GroupId(9), .generation = 1, .step = Step(1)};
  Start(std::move(operation));
  std::vector<float> values(6);
  Start({.table = TableId(3),
         .values = values,
         .deadline = kStart + absl::Seconds(10),
         .done = [this](absl::Time, const OperationResult& result, Outbox&) {
           results_.push_back(result);
         }});
  const std::vector<Message> sent = outbox_.TakeMessages();
  ASSERT_EQ(sent.size(), 4u);
  engine_.SetGroupDeadlineFloor(kStart + absl::Seconds(60));
  // The server had been told of the deadline as it was.
  for (const Message& message : {sent[0], sent[1]}) {
    Refuse(message, absl::DeadlineExceededError("not as fresh as asked"));
  }
  engine_.Wake(kStart + absl::Seconds(10), outbox_);
  const std::vector<Message> again = outbox_.TakeMessages();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].envelope.header().request_id(), sent[0].envelope.header().request_id());
  EXPECT_EQ(again[0].envelope.push_request().deadline_ms(), 50'000u);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status.code(), absl::StatusCode::kDeadlineExceeded)
      << "the program's own deadline holds";
  // It is back early.
  engine_.SetGroupDeadlineFloor(kStart + absl::Seconds(20));
  EXPECT_LE(engine_.NextWake(), kStart + absl::Seconds(20));
  engine_.FailAll(kStart, absl::CancelledError("the test is over"), outbox_);
}

TEST_F(RequestEngineTest, EachShardGetsItsPartOfEachSlot) {
  const std::vector<float> slots = {10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25};
  Operation give = PushAll();
  give.initialization = Epoch(1);
  give.initial_state = InitialState{.slots = slots, .updates = 50, .samples = 400};
  Start(std::move(give));
  std::vector<Message> pushes = outbox_.TakeMessages();
  std::erase_if(pushes, [](const Message& m) { return !m.envelope.has_push_request(); });
  ASSERT_EQ(pushes.size(), 2u);
  ASSERT_EQ(pushes[1].frames.size(), 3u);
  EXPECT_EQ(pushes[1].frames[0].As<float>()[1], gradient_[5]);
  EXPECT_EQ(pushes[1].frames[1].As<float>()[1], 15);
  EXPECT_EQ(pushes[1].frames[2].As<float>()[0], 24);
  EXPECT_EQ(pushes[0].frames[2].As<float>()[3], 23);

  Buffer held = pushes[0].frames[2];
  for (Message& push : pushes) {
    push.frames.clear();
    Answer(push, 50);
  }
  EXPECT_TRUE(results_.empty()) << "a slot is still read";
  held = Buffer();
  engine_.Wake(engine_.NextWake(), outbox_);
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].status.ok());
}

}  // namespace
}  // namespace covey::client
