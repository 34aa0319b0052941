// SPDX-License-Identifier: Apache-2.0
#include "server/shard_actor.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

Code CodeOf(const Message& reply) { return StatusOf(reply).code(); }
std::string TextOf(const Message& reply) { return std::string(StatusOf(reply).message()); }
const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }

TEST(ShardActor, AppliesAPushAndAnswersAPull) {
  ShardDriver driver(TestJob(kAsync, 0));
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
  const Message push = driver.ClientPush(1, {2, 4, 6, 8}, 2);
  const Message reply = driver.Ask(push);
  EXPECT_EQ(CodeOf(reply), Code::kOk);
  EXPECT_EQ(reply.connection, push.connection);
  EXPECT_EQ(reply.envelope.header().request_id(), push.envelope.header().request_id());
  EXPECT_EQ(Pushed(reply).applied_version(), 1u);
  EXPECT_TRUE(Pushed(reply).durable());
  EXPECT_FALSE(Pushed(reply).has_values());
  EXPECT_TRUE(reply.frames.empty());

  driver.Pass(absl::Milliseconds(40));
  const Message pulled = driver.Ask(driver.Pull());
  EXPECT_THAT(ShardDriver::ValuesIn(pulled), ElementsAre(-1, -2, -3, -4));
  const proto::ShardState& state = pulled.envelope.pull_reply().state();
  EXPECT_EQ(state.version(), 1u);
  EXPECT_EQ(state.samples(), 2u);
  EXPECT_EQ(state.age_ms(), 40u);
  EXPECT_EQ(state.generation(), kTestGeneration);
}

TEST(ShardActor, AcknowledgesADuplicateWithItsFirstVersion) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message first = driver.ClientPush(1, {1, 1, 1, 1});
  driver.Ask(first);
  driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}));
  const Message again = driver.Ask(first);
  EXPECT_EQ(CodeOf(again), Code::kOk);
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_EQ(Pushed(again).applied_version(), 1u);
  EXPECT_EQ(Pushed(again).state().version(), 2u);
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
  EXPECT_EQ(driver.actor().counters().duplicates, 1u);
  EXPECT_EQ(driver.actor().counters().pushes, 2u);
}

TEST(ShardActor, AppliesDuplicatesWhenSoPlanted) {
  const BugInPlace bug(PlantedBug::kApplyDuplicates);
  ShardDriver driver(TestJob(kAsync, 0));
  const Message push = driver.ClientPush(1, {1, 1, 1, 1});
  driver.Ask(push);
  driver.Ask(push);
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardActor, SaysHowStaleAGradientWas) {
  ShardDriver driver(TestJob(kAsync, 0));
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    driver.Ask(driver.ClientPush(sequence, {1, 1, 1, 1}));
  }
  Message push = driver.ClientPush(4, {1, 1, 1, 1});
  push.envelope.mutable_push_request()->set_base_version(1);
  EXPECT_EQ(Pushed(driver.Ask(push)).staleness(), 2u);
}

TEST(ShardActor, NeverWritesValuesThatAreBeingSent) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message before = driver.Ask(driver.Pull());
  driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}));
  EXPECT_THAT(ShardDriver::ValuesIn(before), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(driver.Values(), ElementsAre(-1, -1, -1, -1));
}

// A push and a pull whose readers ask for values in this format.
std::vector<Message> ReadIn(proto::WireFormat format, uint64_t sequence, size_t elements,
                            ShardDriver& driver) {
  Message pull = driver.Pull();
  pull.envelope.mutable_pull_request()->mutable_read()->set_value_format(format);
  Message push =
      ShardDriver::WithValues(driver.ClientPush(sequence, std::vector<float>(elements, 0.0f)), 0);
  push.envelope.mutable_push_request()->mutable_read()->set_value_format(format);
  return {driver.Ask(pull), driver.Ask(push)};
}

proto::WireFormat ValueFormatOf(const Message& reply) {
  return reply.envelope.has_push_reply() ? Pushed(reply).value_format()
                                         : reply.envelope.pull_reply().value_format();
}

TEST(ShardActor, SendsValuesInTheFormatThatTheReaderAsksFor) {
  constexpr size_t kElements = 300;  // more than a block
  ShardDriver driver(TestJob(kAsync, 0, kElements));
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < kElements; ++i) gradient[i] = 1 / static_cast<float>(i + 3);
  driver.Ask(driver.ClientPush(1, gradient));
  const std::vector<float> exact = driver.Values();
  uint64_t sequence = 1;
  for (const WireFormat format : kWireFormats) {
    if (NeedsFeedback(format)) continue;
    std::vector<uint8_t> encoded(EncodedBytes(format, kElements));
    Encode(format, exact, encoded);
    for (const Message& reply : ReadIn(ToProto(format), ++sequence, kElements, driver)) {
      EXPECT_EQ(ValueFormatOf(reply), ToProto(format));
      ASSERT_EQ(reply.frames.size(), 1u) << WireFormatName(format);
      EXPECT_THAT(reply.frames[0].bytes(), ::testing::ElementsAreArray(encoded));
      EXPECT_TRUE(CheckFrameChecksums(reply).ok());
    }
  }
  EXPECT_EQ(driver.Values(), exact) << "the shard's own values stay float32";
}

TEST(ShardActor, ReadersThatAreAnsweredTogetherShareTheEncodedValues) {
  ShardDriver driver(TestJob({.kind = Contract::Kind::kBsp}, 4));
  std::vector<Message> replies;
  for (uint32_t group = 1; group <= 4; ++group) {
    Message push = ShardDriver::WithValues(driver.GroupPush(group, 1, {1, 2, 3, 4}), 1);
    push.envelope.mutable_push_request()->mutable_read()->set_value_format(
        group == 3 ? proto::WIRE_FLOAT16 : proto::WIRE_BFLOAT16);
    for (Message& reply : driver.Deliver(push)) replies.push_back(std::move(reply));
  }
  std::map<proto::WireFormat, std::set<const uint8_t*>> frames;
  for (const Message& reply : replies) {
    if (!Pushed(reply).has_values()) continue;
    EXPECT_TRUE(CheckFrameChecksums(reply).ok());
    ASSERT_EQ(reply.frames.size(), 1u);
    std::vector<float> values(4);
    Decode(WireFormatFromProto(Pushed(reply).value_format()).value(), reply.frames[0].bytes(),
           values);
    EXPECT_THAT(values, ElementsAre(-1, -2, -3, -4));
    frames[Pushed(reply).value_format()].insert(reply.frames[0].data());
  }
  EXPECT_EQ(frames[proto::WIRE_FLOAT16].size(), 1u);
  EXPECT_EQ(frames[proto::WIRE_BFLOAT16].size(), 1u);
}

TEST(ShardActor, UpdatesInPlaceAfterItHasEncodedItsValues) {
  ShardDriver driver(TestJob(kAsync, 0));
  const uint8_t* const place = driver.Ask(driver.Pull()).frames[0].data();
  Message pull = driver.Pull();
  pull.envelope.mutable_pull_request()->mutable_read()->set_value_format(proto::WIRE_BFLOAT16);
  EXPECT_EQ(driver.Ask(pull).frames[0].size(), 4 * sizeof(uint16_t));
  driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}));
  EXPECT_EQ(driver.Ask(driver.Pull()).frames[0].data(), place);
}

TEST(ShardActor, SendsFloat32WhereItCannotSendAnotherFormat) {
  TestJob job(kAsync, 0);
  job.spec().mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  job.spec().mutable_optimizer()->set_momentum(0.5);
  ShardDriver driver(job);
  driver.Ask(driver.ClientPush(1, {1, 2, 3, 4}));
  uint64_t sequence = 1;
  for (const auto format : {proto::WIRE_TOP_BLOCK, static_cast<proto::WireFormat>(99)}) {
    for (const Message& reply : ReadIn(format, ++sequence, 4, driver)) {
      EXPECT_EQ(ValueFormatOf(reply), proto::WIRE_FLOAT32);
      ASSERT_EQ(reply.frames.size(), 1u);
      EXPECT_EQ(reply.frames[0].size(), 4 * sizeof(float));
    }
  }
  Message with_slots = driver.Pull();
  with_slots.envelope.mutable_pull_request()->set_with_slots(true);
  with_slots.envelope.mutable_pull_request()->mutable_read()->set_value_format(proto::WIRE_FLOAT16);
  const Message reply = driver.Ask(with_slots);
  EXPECT_EQ(ValueFormatOf(reply), proto::WIRE_FLOAT32);
  ASSERT_EQ(reply.frames.size(), 2u);
  for (const Buffer& frame : reply.frames) EXPECT_EQ(frame.size(), 4 * sizeof(float));
  EXPECT_TRUE(CheckFrameChecksums(reply).ok());
}

TEST(ShardActor, RefusesWhatIsNotFiniteAndStaysBitIdentical) {
  ShardDriver driver(TestJob(kAsync, 0));
  driver.Ask(driver.ClientPush(1, {0.1f, 0.2f, 0.3f, 0.4f}));
  const std::vector<float> before = driver.Values();
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const Message reply = driver.Ask(driver.ClientPush(2, {1, 1, bad, 1}));
    EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
    EXPECT_THAT(TextOf(reply), HasSubstr("client-0"));
    EXPECT_THAT(TextOf(reply), HasSubstr("table=weights shard=0"));
    EXPECT_THAT(TextOf(reply), HasSubstr("element 2"));
    EXPECT_EQ(driver.Values(), before);
  }
  EXPECT_EQ(driver.actor().counters().non_finite, 2u);
  // The refused push did not use up its sequence.
  const Message repaired = driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}));
  EXPECT_FALSE(Pushed(repaired).duplicate());
  EXPECT_EQ(Pushed(repaired).applied_version(), 2u);
}

TEST(ShardActor, TakesWhatIsNotFiniteWhenTheTableSaysSo) {
  TestJob job(kAsync, 0);
  job.spec().set_non_finite(proto::ACCEPT);
  ShardDriver driver(job);
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, std::nanf(""), 1, 1}))), Code::kOk);
  EXPECT_TRUE(std::isnan(driver.Values()[1]));
}

TEST(ShardActor, RefusesBitsThatFlippedOnTheWayAndTakesTheRepetition) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message push = driver.ClientPush(1, {1, 2, 3, 4});
  Message bent = push;
  bent.frames[0] = driver.ClientPush(1, {1, 2, 3, 4.0000005f}).frames[0];
  bent.envelope.add_frame_checksums(FrameChecksum(push.frames[0]));
  EXPECT_EQ(CodeOf(driver.Ask(bent)), Code::kUnavailable);
  EXPECT_EQ(driver.Values(), std::vector<float>(4, 0));
  EXPECT_EQ(driver.actor().counters().malformed, 1u);
  EXPECT_FALSE(Pushed(driver.Ask(push)).duplicate());
}

// The control loop's message about a lease that ends after `left`.
Message Lease(const ShardDriver& driver, absl::Duration left) {
  Message notice;
  notice.set_to({kTestServer, 1});
  notice.envelope.mutable_lease_notice()->set_until_ns(absl::ToUnixNanos(driver.now() + left));
  return notice;
}

TEST(ShardActor, ServesWhatItAloneHoldsOnlyUntilItsLeaseEnds) {
  ShardDriver driver(TestJob(kAsync, 0));
  driver.Deliver(Lease(driver, absl::Seconds(2)));
  driver.Pass(absl::Seconds(2) - absl::Nanoseconds(1));
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kOk);
  driver.Pass(absl::Nanoseconds(1));
  const Message refused = driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(refused), Code::kUnavailable);
  EXPECT_THAT(TextOf(refused), HasSubstr("alone holds it, and its lease is over"));
  EXPECT_GT(refused.envelope.status().retry_after_ms(), 0u);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull())), Code::kUnavailable);

  Message strangers = Lease(driver, absl::Hours(1));
  strangers.connection = 5;
  driver.Deliver(strangers);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull())), Code::kUnavailable) << "only its own process tells";
  driver.Deliver(Lease(driver, absl::Seconds(2)));
  EXPECT_FALSE(Pushed(driver.Ask(driver.ClientPush(2, {1, 1, 1, 1}))).duplicate());
}

TEST(ShardActor, ConfirmsThatALeaseIsOverOnceItServesNothingUnderIt) {
  ShardDriver driver(TestJob(Contract{.kind = Contract::Kind::kBsp}, 2));
  EXPECT_TRUE(driver.Deliver(Lease(driver, absl::Seconds(2))).empty());
  ASSERT_TRUE(
      driver.Deliver(ShardDriver::WithValues(driver.GroupPush(1, 1, {2, 2, 2, 2}), 1)).empty());
  const Message over = Lease(driver, absl::ZeroDuration());
  const std::vector<Message> sent = driver.Deliver(over);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(CodeOf(sent[0]), Code::kUnavailable) << "what waits is refused before";
  EXPECT_EQ(sent[1].to().loop, 0u);
  EXPECT_EQ(sent[1].envelope.from_loop(), 1u);
  EXPECT_EQ(sent[1].envelope.lease_notice().until_ns(), over.envelope.lease_notice().until_ns());
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull())), Code::kUnavailable);
}

// Two groups of three make a round, once the third is late by this duration.
constexpr Contract kQuorum{.kind = Contract::Kind::kLocal,
                           .local_steps = 4,
                           .quorum = 2,
                           .grace = absl::Milliseconds(200)};

TEST(ShardActor, EndsNoRoundAfterItsLease) {
  ShardDriver driver(TestJob(kQuorum, 3));
  driver.Deliver(Lease(driver, absl::Milliseconds(100)));
  const auto ended = [](Message push) { return ShardDriver::WithValues(std::move(push), 1); };
  ASSERT_TRUE(driver.Deliver(ended(driver.GroupPush(1, 1, {2, 2, 2, 2}))).empty());
  ASSERT_TRUE(driver.Deliver(ended(driver.GroupPush(2, 1, {4, 4, 4, 4}))).empty());
  driver.Pass(absl::Milliseconds(100));
  EXPECT_LE(driver.actor().NextWake(), driver.now());
  const std::vector<Message> refused = driver.Wake();
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(CodeOf(refused[0]), Code::kUnavailable);
  EXPECT_THAT(TextOf(refused[0]), HasSubstr("alone holds it, and its lease is over"));
  driver.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(driver.Wake().empty());
  EXPECT_GT(driver.actor().NextWake(), driver.now()) << "what is due must not spin";

  driver.Deliver(Lease(driver, absl::Seconds(2)));
  EXPECT_THAT(driver.Values(), ElementsAre(-3, -3, -3, -3)) << "a round that was due ends then";
}

TEST(ShardActor, EndsNoRoundByAViewAfterItsLease) {
  TestJob job(Contract{.kind = Contract::Kind::kBsp}, 2);
  ShardDriver driver(job);
  driver.Deliver(Lease(driver, absl::Milliseconds(100)));
  const Message push = driver.GroupPush(1, 1, {2, 2, 2, 2});
  ASSERT_TRUE(driver.Deliver(ShardDriver::WithValues(push, 1)).empty());
  driver.Pass(absl::Milliseconds(100));
  job.EndGroup(2, proto::Group::DONE);
  driver.AdoptView(job);
  const std::vector<Message> refused = driver.Sent();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(CodeOf(refused[0]), Code::kUnavailable);
  EXPECT_EQ(driver.actor().FindShard({TableId(kTestTable), ShardIndex(0)})->version(), Version(0));

  driver.Deliver(Lease(driver, absl::Seconds(2)));
  EXPECT_THAT(driver.Values(), ElementsAre(-2, -2, -2, -2));
}

TEST(ShardActor, RefusesAGradientOfAnotherSizeNamingBoth) {
  ShardDriver driver(TestJob(kAsync, 0));
  const Message reply = driver.Ask(driver.ClientPush(1, {1, 2, 3}));
  EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
  EXPECT_THAT(TextOf(reply), HasSubstr("12 bytes"));
  EXPECT_THAT(TextOf(reply), HasSubstr("16 bytes"));
  Message twice = driver.ClientPush(1, {1, 2, 3, 4});
  twice.frames.push_back(twice.frames[0]);
  EXPECT_EQ(CodeOf(driver.Ask(twice)), Code::kInvalidArgument);
  EXPECT_EQ(driver.actor().counters().malformed, 2u);
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
}

TEST(ShardActor, TellsWithoutBytesWhetherAPushWasReceived) {
  ShardDriver driver(TestJob({.kind = Contract::Kind::kBuffered, .buffer = 2}, 2));
  const Message push = ShardDriver::WithValues(driver.GroupPush(1, 1, {1, 2, 3, 4}), 1);
  Message question = push;
  question.frames.clear();
  EXPECT_EQ(CodeOf(driver.Ask(question)), Code::kUnavailable);
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 0u);
  Message answer = driver.Ask(question);
  EXPECT_EQ(CodeOf(answer), Code::kOk);
  EXPECT_TRUE(Pushed(answer).duplicate());
  EXPECT_EQ(Pushed(answer).applied_version(), 0u);
  EXPECT_THAT(ShardDriver::ValuesIn(answer), ElementsAre(0, 0, 0, 0));
  driver.Deliver(driver.GroupPush(2, 1, {1, 2, 3, 4}));
  answer = driver.Ask(question);
  EXPECT_EQ(Pushed(answer).applied_version(), 1u);
  EXPECT_EQ(driver.actor().counters().pushes, 2u);
  // No producer learns of another's pushes, or gets their replies.
  question.envelope.mutable_push_request()->mutable_id()->set_producer(2);
  EXPECT_EQ(CodeOf(driver.Ask(question)), Code::kInvalidArgument);
}

TEST(ShardActor, RefusesPushIdsThatLie) {
  ShardDriver driver(TestJob(kAsync, 1));
  std::vector<Message> lies(5, driver.GroupPush(1, 1, {1, 1, 1, 1}));
  lies[0].envelope.mutable_push_request()->mutable_id()->set_sequence(2);
  lies[1].envelope.mutable_push_request()->set_group(2);
  lies[2].envelope.mutable_push_request()->set_group_generation(4);
  lies[3].envelope.mutable_push_request()->set_samples(~uint64_t{0});
  lies[4] = driver.ClientPush(1, {1, 1, 1, 1});
  lies[4].envelope.mutable_push_request()->mutable_id()->set_producer(2);
  for (const Message& lie : lies) {
    EXPECT_EQ(CodeOf(driver.Ask(lie)), Code::kInvalidArgument) << TextOf(driver.Ask(lie));
  }
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
}

TEST(ShardActor, RefusesSequencesAndStepsThatNoProducerReaches) {
  ShardDriver driver(TestJob(kAsync, 1));
  std::vector<Message> pushes;
  for (uint64_t absurd : {kPushSequenceMax + 1, ~uint64_t{0}}) {
    pushes.push_back(driver.GroupPush(1, absurd, {1, 1, 1, 1}));
    pushes.push_back(driver.ClientPush(absurd, {1, 1, 1, 1}));
    pushes.push_back(driver.ClientPush(1, {1, 1, 1, 1}));
    pushes.back().envelope.mutable_push_request()->set_step(absurd);
  }
  for (const Message& push : pushes) {
    const Message answer = driver.Ask(push);
    EXPECT_EQ(CodeOf(answer), Code::kInvalidArgument);
    EXPECT_THAT(TextOf(answer), HasSubstr("the most is 9223372036854775808"));
  }
  EXPECT_THAT(driver.Values(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(kPushSequenceMax, {1, 1, 1, 1}))), Code::kOk);
}

TEST(ShardActor, SaysWhereAShardIsWhenItIsNotHere) {
  TestJob job(kAsync, 0);
  ShardDriver driver(job);
  Message unknown = driver.Pull();
  unknown.envelope.mutable_pull_request()->set_table(8);
  EXPECT_EQ(CodeOf(driver.Ask(unknown)), Code::kNotFound);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(1))), Code::kNotFound);

  unknown.envelope.mutable_header()->set_epoch(6);
  const Message newer = driver.Ask(unknown);
  EXPECT_EQ(CodeOf(newer), Code::kUnavailable);
  EXPECT_THAT(TextOf(newer), HasSubstr("view epoch 5 is older than 6, retry"));

  Message stale = driver.ClientPush(1, {1, 1, 1, 1});
  stale.envelope.mutable_push_request()->set_shard_generation(2);
  EXPECT_EQ(CodeOf(driver.Ask(stale)), Code::kFailedPrecondition);

  job.view.mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_loop(2);
  job.view.set_epoch(6);
  driver.AdoptView(job);
  const Message moved = driver.Ask(driver.Pull());
  EXPECT_EQ(CodeOf(moved), Code::kFailedPrecondition);
  EXPECT_THAT(TextOf(moved), HasSubstr("lives on server-0 loop 2"));
}

TEST(ShardActor, BeginsAnewUnderANewGeneration) {
  TestJob job(kAsync, 0);
  ShardDriver driver(job);
  driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}));
  Message parked = driver.Pull();
  parked.envelope.mutable_pull_request()->mutable_read()->set_min_version(9);
  EXPECT_TRUE(driver.Deliver(parked).empty());

  job.view.mutable_tables(0)->mutable_shards(0)->set_generation(6);
  job.view.set_epoch(6);
  driver.AdoptView(job);
  const std::vector<Message> closed = driver.Sent();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(CodeOf(closed[0]), Code::kFailedPrecondition);
  Message pull = driver.Pull();
  pull.envelope.mutable_pull_request()->set_shard_generation(6);
  EXPECT_THAT(ShardDriver::ValuesIn(driver.Ask(pull)), ElementsAre(0, 0, 0, 0));
}

TEST(ShardActor, HearsOfViewsFromItsOwnProcessOnly) {
  TestJob job(kAsync, 0);
  ShardDriver driver(job);
  job.view.clear_tables();
  job.view.set_epoch(9);
  Message forged = driver.Request(kTestServer);
  *forged.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
  EXPECT_TRUE(driver.Deliver(forged).empty());
  EXPECT_EQ(driver.actor().counters().malformed, 1u);
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull())), Code::kOk);
}

TEST(ShardActor, OpensShardsWhenIdleAndOnDemand) {
  ShardDriver driver(TestJob(kAsync, 0, 4, 3));
  const auto open = [&](uint32_t shard) {
    return driver.actor().FindShard({TableId(kTestTable), ShardIndex(shard)}) != nullptr;
  };
  EXPECT_LE(driver.actor().NextWake(), driver.now());
  EXPECT_EQ(CodeOf(driver.Ask(driver.Pull(2))), Code::kOk);
  EXPECT_FALSE(open(0));
  driver.Wake();
  driver.Wake();
  EXPECT_TRUE(open(0) && open(1) && open(2));
  EXPECT_GT(driver.actor().NextWake(), driver.now());
}

TEST(ShardActor, SaysWhyATableCannotBeServed) {
  TestJob job(kAsync, 0);
  job.spec().mutable_contract()->set_kind(proto::Contract::LOCAL);
  ShardDriver driver(job);
  const Message reply = driver.Ask(driver.Pull());
  EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
  EXPECT_THAT(TextOf(reply), HasSubstr("table 'weights'"));
}

// Otherwise one wrong step would open the gates of all that wait for its group, for good.
TEST(ShardActor, AStepFarBeyondTheGroupsLastOneChangesNothing) {
  ShardDriver driver(TestJob(kAsync, 1));
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, 7, {1, 1, 1, 1}))), Code::kOk);
  const std::vector<float> before = driver.Values();
  for (const uint64_t step : {8 + kPushSequenceJumpMax, kPushSequenceMax}) {
    const Message reply = driver.Ask(driver.GroupPush(1, step, {1, 1, 1, 1}));
    EXPECT_EQ(CodeOf(reply), Code::kInvalidArgument);
    EXPECT_THAT(TextOf(reply), HasSubstr("after step 7"));
  }
  EXPECT_EQ(driver.Values(), before);
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, 8, {1, 1, 1, 1}))), Code::kOk);
  EXPECT_EQ(CodeOf(driver.Ask(driver.GroupPush(1, 8 + kPushSequenceJumpMax, {1, 1, 1, 1}))),
            Code::kOk);
}

TEST(ShardActor, RefusesTheDeadAndTheUnknown) {
  TestJob job(kAsync, 1);
  ShardDriver driver(job);
  Message stranger = driver.ClientPush(1, {1, 1, 1, 1});
  SetSender(50, stranger);
  proto::PushId& id = *stranger.envelope.mutable_push_request()->mutable_id();
  id.set_producer(50);
  id.set_producer_incarnation(IncarnationOf(50));
  EXPECT_EQ(CodeOf(driver.Ask(stranger)), Code::kInvalidArgument);
  stranger.envelope.mutable_header()->set_epoch(6);
  EXPECT_EQ(CodeOf(driver.Ask(stranger)), Code::kUnavailable);

  const Message before = driver.GroupPush(1, 1, {1, 1, 1, 1});
  EXPECT_EQ(CodeOf(driver.Ask(before)), Code::kOk);
  job.view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  job.EndGroup(1, proto::Group::BROKEN, "worker-0 dead: silent for 2.6 s");
  driver.AdoptView(job);
  EXPECT_EQ(CodeOf(driver.Ask(driver.ClientPush(1, {1, 1, 1, 1}))), Code::kAborted);
  const Message broken = driver.Ask(driver.GroupPush(1, 2, {1, 1, 1, 1}));
  EXPECT_EQ(CodeOf(broken), Code::kAborted);
  EXPECT_THAT(TextOf(broken), HasSubstr("worker-0 dead"));
  // An acknowledged push stays acknowledged.
  EXPECT_TRUE(Pushed(driver.Ask(before)).duplicate());
}

TEST(ShardActor, RefusesAnOlderGenerationOfAGroup) {
  TestJob job(kAsync, 1);
  job.view.mutable_groups(0)->set_generation(2);
  ShardDriver driver(job);
  Message old = driver.GroupPush(1, 1, {1, 1, 1, 1});
  Message fresh = driver.GroupPush(1, 2, {1, 1, 1, 1});
  fresh.envelope.mutable_push_request()->set_group_generation(2);
  fresh.envelope.mutable_push_request()->mutable_id()->set_producer_incarnation(2);
  EXPECT_EQ(CodeOf(driver.Ask(old)), Code::kOk);
  EXPECT_FALSE(Pushed(driver.Ask(fresh)).duplicate());
  EXPECT_EQ(CodeOf(driver.Ask(old)), Code::kAborted);
}

TEST(ShardActor, ReportsInTheSameCallThatAShardCannotBeLoadedWithoutAStore) {
  TestJob job(kAsync, 0);
  proto::Shard& shard = *job.view.mutable_tables(0)->mutable_shards(0);
  shard.set_origin("snapshot-000001-e1");
  shard.set_chain_epoch(1);
  ShardDriver driver(job, {.has_store = false});
  std::vector<proto::ReplicaReport> reports;
  for (const Message& message : driver.Wake()) {
    for (const auto& report : message.envelope.replica_report_request().reports()) {
      reports.push_back(report);
    }
  }
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0].reason(), HasSubstr("start all servers with --store DIR"));
}

TEST(ShardActor, ReportsItsLoadToTheControlLoop) {
  ShardActor actor({.malformed_at_transport = [] { return uint64_t{5}; }});
  Outbox outbox;
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(actor.NextWake(), absl::InfiniteFuture());
  TestJob job(kAsync, 0);
  Message view;
  view.set_to({kTestServer, 1});
  *view.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
  actor.Receive(now, view, outbox);
  now += absl::Seconds(1);
  actor.Wake(now, outbox);
  now += absl::Seconds(1);
  actor.Wake(now, outbox);
  const std::vector<Message> sent = outbox.TakeMessages();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].to(), (Address{kTestServer, 0}));
  EXPECT_EQ(sent[1].envelope.heartbeat_request().load().malformed(), 5u);
  EXPECT_EQ(sent[1].envelope.heartbeat_request().load().table_bytes(), 16u);
}

}  // namespace
}  // namespace covey::server
