// SPDX-License-Identifier: Apache-2.0
#include "worker/update/local_sgd_part.h"

#include "common/net/frame_checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kServer = 500;
constexpr float kRate = 0.5f;

// A group of one with one LOCAL table of two elements; the server's replies are given by hand. Each
// step has one sample, and the inner optimizer is SGD.
class LocalSgdPartTest : public testing::Test {
 protected:
  LocalSgdPartTest()
      : ring_(1, 16, 1), client_({}, request_id_), link_(client_, ring_.communicator(0)) {
    proto::ClusterView view = Ring::ActiveView(1);
    view.set_epoch(2);
    proto::Node& server = *view.add_nodes();
    server.set_id(kServer);
    server.set_name("server-0");
    server.set_role(proto::SERVER);
    server.set_state(proto::Node::ALIVE);
    server.add_endpoints("");
    server.add_endpoints("tcp://127.0.0.1:9000");
    proto::Table& table = *view.add_tables();
    table.set_id(1);
    table.mutable_spec()->set_name("w");
    table.mutable_spec()->add_shape(2);
    proto::Shard& shard = *table.add_shards();
    shard.set_element_count(2);
    shard.set_generation(1);
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(kServer);
    replica.set_loop(1);
    ring_.SetView(view);
    client_.SetView(ring_.now(), NodeId(Ring::kFirstNode), *ClusterView::Make(view),
                    ring_.outbox(0));
    ring_.SetElsewhere([this](uint32_t, Message request) { requests_.push_back(request); });
  }

  void Make(const LocalRounds& rounds) {
    auto made =
        LocalSgdPart::Create(link_,
                             {.table = TableId(1),
                              .name = "'w'",
                              .first_shard = ShardIndex(0),
                              .shards = {2},
                              .elements = {0, 2}},
                             {.rounds = rounds, .inner = {.learning_rate = {.base_rate = kRate}}});
    ASSERT_TRUE(made.ok()) << made.status();
    machine_ = *std::move(made);
    Fetch();
    Answer({10, 20});
    ASSERT_THAT(values_, ElementsAre(10, 20));
  }

  PartStep StepOf(uint64_t step) {
    done_ = false;
    return {.step = Step(step),
            .samples = 1,
            .sum = gradient_,
            .values = values_,
            .deadline = ring_.now() + absl::Seconds(10),
            .done = [this](absl::Time, const absl::Status& status, Outbox&) {
              done_ = true;
              status_ = status;
            }};
  }
  void Apply(uint64_t step, std::vector<float> gradient) {
    gradient_ = std::move(gradient);
    machine_->Apply(ring_.now(), StepOf(step), ring_.outbox(0));
  }
  void Fetch() { machine_->Fetch(ring_.now(), StepOf(0), ring_.outbox(0)); }

  // The oldest request; fails the test when there is none.
  Message TakeRequest() {
    ring_.Collect();
    if (requests_.empty()) {
      ADD_FAILURE() << "no request";
      return Message();
    }
    const Message request = requests_.front();
    requests_.pop_front();
    return request;
  }
  // Releases the request's frames, as a transport does, and replies.
  void AnswerTo(Message& request, std::vector<float> values) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_header()->set_node(kServer);
    request.frames.clear();
    if (request.envelope.has_push_request()) {
      reply.envelope.mutable_push_reply()->set_has_values(true);
      reply.envelope.mutable_push_reply()->set_durable(true);
    } else {
      reply.envelope.mutable_pull_reply();
    }
    reply.frames.push_back(Buffer::CopyOf(
        {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}));
    SetFrameChecksums(reply);
    client_.Receive(ring_.now(), reply, ring_.outbox(0));
    client_.Wake(ring_.now(), ring_.outbox(0));
  }
  void Answer(std::vector<float> values) {
    Message request = TakeRequest();
    AnswerTo(request, std::move(values));
  }
  bool Quiet() {
    ring_.Collect();
    return requests_.empty();
  }

  uint64_t request_id_ = 1;
  Ring ring_;
  client::RequestEngine client_;
  ServerLink link_;
  std::deque<Message> requests_;
  std::shared_ptr<LocalSgdPart> machine_;
  std::vector<float> gradient_;
  std::vector<float> values_ = {0, 0};
  bool done_ = false;
  absl::Status status_;
};

TEST(LocalRoundsTest, EndAtEqualDistancesFromTheOffset) {
  const LocalRounds rounds{.steps = 4, .offset = 1};
  std::vector<uint64_t> ends;
  for (uint64_t step = 1; step <= 12; ++step) {
    if (rounds.EndsWith(Step(step))) ends.push_back(step);
  }
  EXPECT_THAT(ends, ElementsAre(3, 7, 11));
  EXPECT_EQ(rounds.RoundsAt(Step(3)), 1u);
  EXPECT_EQ(rounds.RoundsAt(Step(10)), 2u);
  EXPECT_EQ(rounds.RoundsAt(Step(11)), 3u);
}

TEST(LocalRoundsTest, TensorsTakeTurns) {
  std::vector<uint64_t> offsets;
  for (size_t t = 0; t < 4; ++t) offsets.push_back(LocalRounds::OffsetOf(t, 4, 6));
  EXPECT_THAT(offsets, ElementsAre(0, 1, 3, 4));
}

TEST_F(LocalSgdPartTest, PushesWhatChangedAtTheEndOfARound) {
  Make({.steps = 2});
  Apply(1, {2, 4});
  EXPECT_TRUE(done_);
  EXPECT_TRUE(Quiet());
  EXPECT_THAT(values_, ElementsAre(9, 18));
  Apply(2, {2, 4});
  EXPECT_FALSE(done_) << "the round's result is waited for";
  Message request = TakeRequest();
  const proto::PushRequest& push = request.envelope.push_request();
  EXPECT_EQ(push.samples(), 2u);
  EXPECT_EQ(push.step(), 1u) << "rounds are numbered";
  EXPECT_EQ(push.id().sequence(), 1u);
  EXPECT_EQ(push.read().step(), 1u);
  // samples * (start - end)
  EXPECT_THAT(request.frames[0].As<float>(), ElementsAre(4, 8));
  AnswerTo(request, {5, 6});
  ASSERT_TRUE(done_);
  EXPECT_TRUE(status_.ok());
  EXPECT_THAT(values_, ElementsAre(5, 6));
  // The next round starts at these values.
  Apply(3, {2, 0});
  Apply(4, {0, 2});
  const Message second = TakeRequest();
  EXPECT_THAT(second.frames[0].As<float>(), ElementsAre(2, 2));
  EXPECT_EQ(second.envelope.push_request().samples(), 2u);
  EXPECT_EQ(second.envelope.push_request().step(), 2u);
}

TEST_F(LocalSgdPartTest, OverlapKeepsWhatWasLearnedMeanwhile) {
  Make({.steps = 4, .overlap = 2});
  for (uint64_t step = 1; step <= 4; ++step) Apply(step, {2, 2});
  EXPECT_TRUE(done_);
  EXPECT_THAT(values_, ElementsAre(6, 16));
  Message request = TakeRequest();
  // The reply arrives early, but is not adopted early.
  AnswerTo(request, {100, 200});
  Apply(5, {2, 2});
  EXPECT_THAT(values_, ElementsAre(5, 15));
  Apply(6, {2, 2});
  ASSERT_TRUE(done_);
  EXPECT_THAT(values_, ElementsAre(98, 198));
  // These two steps are part of the next round's change.
  Apply(7, {2, 2});
  Apply(8, {2, 2});
  const Message second = TakeRequest();
  EXPECT_THAT(second.frames[0].As<float>(), ElementsAre(4 * 4, 4 * 4));
  EXPECT_EQ(second.envelope.push_request().samples(), 4u);
}

TEST_F(LocalSgdPartTest, ALateAnswerIsWaitedFor) {
  Make({.steps = 4, .overlap = 1, .offset = 3});
  Apply(1, {2, 2});
  EXPECT_TRUE(done_);
  Apply(2, {2, 2});
  EXPECT_FALSE(done_);
  Answer({0, 0});
  ASSERT_TRUE(done_);
  EXPECT_THAT(values_, ElementsAre(-1, -1));
}

TEST_F(LocalSgdPartTest, AFetchKeepsTheRoundUnderWay) {
  Make({.steps = 4});
  Apply(1, {2, 2});
  Fetch();
  EXPECT_FALSE(done_);
  Answer({50, 60});
  ASSERT_TRUE(done_);
  EXPECT_THAT(values_, ElementsAre(49, 59));
}

TEST_F(LocalSgdPartTest, AFetchWaitsForAnAnswerOnItsWay) {
  Make({.steps = 2, .overlap = 1});
  Apply(1, {0, 0});
  Apply(2, {2, 2});
  ASSERT_TRUE(done_);
  Message push = TakeRequest();
  Fetch();
  EXPECT_TRUE(Quiet());
  AnswerTo(push, {30, 30});
  EXPECT_FALSE(done_);
  Answer({40, 40});
  ASSERT_TRUE(done_);
  EXPECT_THAT(values_, ElementsAre(40, 40));
}

TEST_F(LocalSgdPartTest, ARefusedPushFailsTheGroupAndTheNextCall) {
  Make({.steps = 2, .overlap = 1});
  Apply(1, {0, 0});
  Apply(2, {2, 2});
  Message reply = MakeReply(TakeRequest());
  reply.envelope.mutable_header()->set_node(kServer);
  reply.envelope.mutable_push_reply();
  SetStatus(absl::InvalidArgumentError("NaN in the change"), reply);
  client_.Receive(ring_.now(), reply, ring_.outbox(0));
  client_.Wake(ring_.now(), ring_.outbox(0));
  EXPECT_THAT(ring_.communicator(0).failure().message(), HasSubstr("NaN in the change"));
  Apply(3, {2, 2});
  EXPECT_TRUE(done_);
  EXPECT_THAT(status_.message(), HasSubstr("NaN in the change"));
}

TEST_F(LocalSgdPartTest, AnInnerGradientIsScreened) {
  Make({.steps = 2});
  Apply(1, {std::numeric_limits<float>::infinity(), 0});
  EXPECT_TRUE(done_);
  EXPECT_THAT(status_.message(), HasSubstr("tensor 'w' in step 1"));
}

}  // namespace
}  // namespace covey::worker
