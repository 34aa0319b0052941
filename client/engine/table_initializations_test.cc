// SPDX-License-Identifier: Apache-2.0
#include "client/engine/table_initializations.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "client/engine/client_actor.h"
#include "common/cluster/view.h"
#include "common/net/frame_checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr uint64_t kSelf = 7;
constexpr uint64_t kServer = 3;

// A client that has registered as node 7, and knows two tables of 4 elements that wait for their
// initial values.
class TableInitializationsTest : public ::testing::Test {
 protected:
  struct Outcome {
    absl::Status status;
    bool given = false;
  };

  TableInitializationsTest() : client_({.member = {.job_name = "job", .role = proto::CLIENT}}) {
    client_.Wake(now_, outbox_);
    Message reply = MakeReply(SentOf(proto::Envelope::kRegisterRequest).at(0));
    reply.envelope.mutable_register_reply()->set_node(kSelf);
    *reply.envelope.mutable_register_reply()->mutable_view() = View(1, 0, 0);
    client_.Receive(now_, reply, outbox_);
    EXPECT_EQ(client_.member().state(), Member::State::kMember);
    Sent();
  }

  // Both tables take their values from this call under the epoch of the view.
  static proto::ClusterView View(uint64_t epoch, uint64_t node, uint64_t call) {
    proto::ClusterView view;
    view.set_epoch(epoch);
    view.set_job_name("job");
    view.set_job(JobFingerprint("job"));
    proto::Node& server = *view.add_nodes();
    server.set_id(kServer);
    server.set_role(proto::SERVER);
    server.set_name("server-0");
    server.set_state(proto::Node::ALIVE);
    for (int i = 0; i < 2; ++i) server.add_endpoints("sim://server-0");
    for (const auto& [id, name] : {std::pair(1u, "a"), std::pair(2u, "b")}) {
      proto::Table& table = *view.add_tables();
      table.set_id(id);
      table.mutable_spec()->set_name(name);
      table.mutable_spec()->set_data_type(proto::FLOAT32);
      table.mutable_spec()->add_shape(4);
      table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::GIVEN);
      table.mutable_spec()->mutable_learning_rate()->set_base(1);
      table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::ASYNC);
      proto::Shard& shard = *table.add_shards();
      shard.set_element_count(4);
      shard.set_generation(1);
      shard.add_chain()->set_node(kServer);
      shard.mutable_chain(0)->set_loop(1);
      table.mutable_initialization()->set_epoch(epoch);
      table.mutable_initialization()->set_node(node);
      table.mutable_initialization()->set_call(call);
    }
    return view;
  }

  std::vector<Message> Sent() { return outbox_.TakeMessages(); }
  std::vector<Message> SentOf(proto::Envelope::BodyCase body) {
    std::vector<Message> sent = Sent();
    std::erase_if(sent, [&](const Message& m) { return m.envelope.body_case() != body; });
    for (Message& message : sent) message.frames.clear();  // a push ends when nobody holds them
    return sent;
  }
  // The requests to the scheduler about initial values that were sent.
  std::vector<Message> Asked() { return SentOf(proto::Envelope::kInitializeTablesRequest); }
  static const proto::InitializeTablesRequest& Body(const Message& request) {
    return request.envelope.initialize_tables_request();
  }

  void Start(std::optional<Outcome>& outcome, size_t elements = 4) {
    const std::span<const float> values = std::span<const float>(values_).first(elements);
    client_.initializations().Start(
        now_, {{.table = "a", .values = values}, {.table = "b", .values = values}},
        now_ + absl::Seconds(60),
        [&outcome](absl::Time, const absl::Status& status, bool given, Outbox&) {
          outcome = {.status = status, .given = given};
        },
        outbox_);
  }
  void Answer(const Message& request, uint64_t epoch, const proto::ClusterView& view) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_initialize_tables_reply()->set_epoch(epoch);
    *reply.envelope.mutable_initialize_tables_reply()->mutable_view() = view;
    client_.Receive(now_, reply, outbox_);
  }
  void Refuse(const Message& request, const absl::Status& why) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_initialize_tables_reply();
    SetStatus(why, reply);
    client_.Receive(now_, reply, outbox_);
  }
  // Drops them first: an operation lasts as long as its frames.
  void AnswerPushes(std::vector<Message> pushes, const absl::Status& status) {
    std::vector<Message> replies;
    for (const Message& push : pushes) {
      Message& reply = replies.emplace_back(MakeReply(push));
      reply.envelope.mutable_header()->set_node(kServer);
      proto::PushReply& body = *reply.envelope.mutable_push_reply();
      *body.mutable_id() = push.envelope.push_request().id();
      body.set_durable(true);
      body.mutable_state()->set_generation(1);
      SetStatus(status, reply);
    }
    pushes.clear();
    for (const Message& reply : replies) client_.Receive(now_, reply, outbox_);
  }
  // As the watch brings it.
  void Adopt(const proto::ClusterView& view) { client_.member().Adopt(now_, view, outbox_); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  Outbox outbox_;
  std::vector<float> values_ = {1, 2, 3, 4};
  ClientActor client_;
};

TEST_F(TableInitializationsTest, PushesUnderItsEpochAndSaysWhatIsHeld) {
  std::optional<Outcome> outcome;
  Start(outcome);
  const std::vector<Message> asked = Asked();
  ASSERT_EQ(asked.size(), 1u);
  const uint64_t call = Body(asked[0]).call();
  EXPECT_NE(call, 0u);
  Answer(asked[0], 2, View(2, kSelf, call));
  std::vector<Message> pushes = SentOf(proto::Envelope::kPushRequest);
  ASSERT_EQ(pushes.size(), 2u);
  for (const Message& push : pushes) {
    EXPECT_EQ(push.envelope.push_request().initialization_epoch(), 2u);
  }
  AnswerPushes(std::move(pushes), absl::OkStatus());
  const std::vector<Message> held = Asked();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(Body(held[0]).held_epoch(), 2u);
  EXPECT_EQ(Body(held[0]).call(), call);
  EXPECT_FALSE(outcome);
  proto::ClusterView done = View(3, 0, 0);
  for (proto::Table& table : *done.mutable_tables()) table.clear_initialization();
  Answer(held[0], 0, done);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  EXPECT_TRUE(outcome->given);
  EXPECT_TRUE(Asked().empty()) << "there is nothing to give up";
}

TEST_F(TableInitializationsTest, EachCallHasANumber) {
  std::optional<Outcome> first;
  std::optional<Outcome> second;
  Start(first);
  Start(second);
  const std::vector<Message> asked = Asked();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_NE(Body(asked[0]).call(), Body(asked[1]).call());
}

TEST_F(TableInitializationsTest, ACallThatFailsGivesUp) {
  std::optional<Outcome> outcome;
  Start(outcome, 3);
  const Message asked = Asked().at(0);
  const uint64_t call = Body(asked).call();
  Answer(asked, 2, View(2, kSelf, call));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status.code(), Code::kInvalidArgument);
  EXPECT_THAT(outcome->status.message(), HasSubstr("it has 4 elements, and 3 values were given"));
  const std::vector<Message> given_up = Asked();
  ASSERT_EQ(given_up.size(), 1u) << "and nothing was pushed";
  EXPECT_TRUE(Body(given_up[0]).gives_up());
  EXPECT_EQ(Body(given_up[0]).call(), call);

  Adopt(View(3, kSelf, call));
  EXPECT_TRUE(Asked().empty()) << "it says so already";
  now_ += absl::Seconds(10);
  client_.Wake(now_, outbox_);
  EXPECT_EQ(Asked().size(), 1u) << "and again, until the scheduler answers";
  Answer(given_up[0], 0, View(4, 0, 0));
  now_ += absl::Seconds(10);
  client_.Wake(now_, outbox_);
  EXPECT_TRUE(Asked().empty());
}

// The request reaches the scheduler after the call has ended, and nobody would give the values.
TEST_F(TableInitializationsTest, ACallThatIsNamedTooLateGivesUp) {
  std::optional<Outcome> outcome;
  Start(outcome);
  const uint64_t call = Body(Asked().at(0)).call();
  now_ += absl::Seconds(61);
  client_.Wake(now_, outbox_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status.code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(Asked().empty()) << "the scheduler has not named it";
  Adopt(View(2, kSelf, call));
  const std::vector<Message> given_up = Asked();
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_TRUE(Body(given_up[0]).gives_up());
  EXPECT_EQ(Body(given_up[0]).call(), call);
}

TEST_F(TableInitializationsTest, NoOtherCallIsGivenUp) {
  std::optional<Outcome> outcome;
  Start(outcome);
  const uint64_t call = Body(Asked().at(0)).call();
  Adopt(View(2, kSelf, call));
  EXPECT_TRUE(Asked().empty()) << "it is under way";
  Adopt(View(3, 8, call + 1));
  EXPECT_TRUE(Asked().empty()) << "of another node";
}

TEST_F(TableInitializationsTest, AnErrorOfTheSchedulerEndsTheCall) {
  std::optional<Outcome> outcome;
  Start(outcome);
  Refuse(Asked().at(0), absl::NotFoundError("no such table"));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status.code(), Code::kNotFound);
  EXPECT_FALSE(outcome->given);
}

TEST_F(TableInitializationsTest, AsksAgainWhenServersHaveANewerEpoch) {
  std::optional<Outcome> outcome;
  Start(outcome);
  const Message asked = Asked().at(0);
  const uint64_t call = Body(asked).call();
  Answer(asked, 2, View(2, kSelf, call));
  AnswerPushes(SentOf(proto::Envelope::kPushRequest), absl::AbortedError("another epoch"));
  const std::vector<Message> again = Asked();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(Body(again[0]).held_epoch(), 0u);
  EXPECT_EQ(Body(again[0]).call(), call);
  EXPECT_FALSE(outcome);
  Answer(again[0], 2, View(2, kSelf, call));
  ASSERT_TRUE(outcome) << "no epoch is tried twice";
  EXPECT_EQ(outcome->status.code(), Code::kAborted);
}

TEST_F(TableInitializationsTest, PushesTheStateThatComesWithTheValues) {
  const std::vector<float> slots = {5, 5, 5, 5, 6, 6, 6, 6};
  std::optional<Outcome> outcome;
  client_.initializations().Start(
      now_,
      {{.table = "a",
        .values = values_,
        .state = InitialState{.slots = slots, .updates = 3, .samples = 30}},
       {.table = "b", .values = values_}},
      now_ + absl::Seconds(60),
      [&outcome](absl::Time, const absl::Status& status, bool given, Outbox&) {
        outcome = {.status = status, .given = given};
      },
      outbox_);
  const Message asked = Asked().at(0);
  const uint64_t call = Body(asked).call();
  Answer(asked, 2, View(2, kSelf, call));
  std::vector<Message> pushes = Sent();
  std::erase_if(pushes, [](const Message& m) { return !m.envelope.has_push_request(); });
  ASSERT_EQ(pushes.size(), 2u);
  for (Message& push : pushes) {
    const proto::PushRequest& body = push.envelope.push_request();
    const bool has_state = body.id().table() == 1;
    EXPECT_EQ(body.has_initial_state(), has_state);
    EXPECT_EQ(body.initial_state().updates(), has_state ? 3u : 0u);
    EXPECT_EQ(body.initial_state().samples(), has_state ? 30u : 0u);
    ASSERT_EQ(push.frames.size(), has_state ? 3u : 1u);
    EXPECT_TRUE(CheckFrameChecksums(push).ok());
    EXPECT_EQ(push.frames[0].As<float>()[3], 4);
    if (has_state) {
      EXPECT_EQ(push.frames[1].As<float>()[3], 5);
      EXPECT_EQ(push.frames[2].As<float>()[0], 6);
      EXPECT_EQ(push.frames[2].size(), 4 * sizeof(float));
    }
    push.frames.clear();
  }
  AnswerPushes(std::move(pushes), absl::OkStatus());
  EXPECT_EQ(Body(Asked().at(0)).held_epoch(), 2u);
}

TEST(CheckNamedValues, RefusesStatesThatNoTableCanTake) {
  const std::vector<float> values = {1, 2, 3};
  const std::vector<float> two_slots = {1, 2, 3, 4, 5, 6};
  const std::vector<float> bad = {1, 2, 3, 4, std::numeric_limits<float>::infinity(), 6};
  const auto with = [&](const InitialState& state) {
    return NamedValues{.table = "a", .values = values, .state = state};
  };
  const auto check = [](const NamedValues& given) { return CheckNamedValues({&given, 1}); };
  EXPECT_TRUE(check(with({.slots = two_slots, .updates = 1})).ok());
  EXPECT_THAT(check(with({.slots = bad})).message(),
              HasSubstr("'a': element 1 of optimizer slot 2"));
  EXPECT_THAT(check(with({.updates = ~0ull})).message(), HasSubstr("give at most"));
  EXPECT_THAT(check(with({.samples = ~0ull})).message(), HasSubstr("give at most"));
  EXPECT_TRUE(CheckSlots(with({.slots = two_slots}), 2).ok());
  EXPECT_TRUE(CheckSlots({.table = "a", .values = values}, 2).ok()) << "it begins empty";
  const absl::Status other = CheckSlots(with({.slots = two_slots}), 1);
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_THAT(other.message(), HasSubstr("'a': its optimizer keeps 1 slots of 3 elements, and 6"));
}

TEST(CheckNamedValues, RefusesWhatNoTableCanTake) {
  const std::vector<float> good = {1, 2, 3};
  const std::vector<float> bad = {1, std::numeric_limits<float>::infinity(), 3};
  EXPECT_TRUE(CheckNamedValues({}).ok());
  const std::vector<NamedValues> fine = {{.table = "a", .values = good},
                                         {.table = "b", .values = good}};
  EXPECT_TRUE(CheckNamedValues(fine).ok());
  const std::vector<NamedValues> twice = {{.table = "a", .values = good},
                                          {.table = "a", .values = good}};
  const absl::Status named = CheckNamedValues(twice);
  EXPECT_EQ(named.code(), Code::kInvalidArgument);
  EXPECT_THAT(named.message(), HasSubstr("table 'a': it is named twice"));
  const std::vector<NamedValues> infinite = {{.table = "b", .values = bad}};
  const absl::Status found = CheckNamedValues(infinite);
  EXPECT_EQ(found.code(), Code::kInvalidArgument);
  EXPECT_THAT(found.message(), HasSubstr("table 'b': the value of element 1 is inf"));
}

}  // namespace
}  // namespace covey::client
