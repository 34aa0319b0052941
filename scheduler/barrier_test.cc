// SPDX-License-Identifier: Apache-2.0
#include "scheduler/barrier.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

class BarrierTest : public ::testing::Test {
 protected:
  BarrierTest() {
    for (uint64_t id : {2, 3, 4}) {
      proto::Node& node = *state_.mutable_view()->add_nodes();
      node.set_id(id);
      node.set_role(proto::WORKER);
      node.set_state(proto::Node::ALIVE);
      node.set_name("worker-" + std::to_string(id - 2));
    }
  }

  struct Call {
    uint64_t node;
    uint64_t request = 1;
    uint32_t participants = 3;
    absl::Duration after = absl::ZeroDuration();
  };
  // Returns the decision; replies are added to answers_.
  std::string Arrive(const Call& call) {
    Message message;
    message.envelope.mutable_header()->set_node(call.node);
    message.envelope.mutable_header()->set_request_id(call.request);
    proto::BarrierRequest& request = *message.envelope.mutable_barrier_request();
    request.set_name("b");
    request.set_participants(call.participants);
    request.set_deadline_ms(1000);
    answers_.clear();
    barriers_.Arrive(kStart + call.after, message, answers_);
    return state_.News();
  }

  TestState state_;
  Barriers barriers_{state_};
  std::vector<Barriers::Answer> answers_;
};

TEST_F(BarrierTest, ReleasesAllTogether) {
  EXPECT_EQ(Arrive({.node = 2}), "");
  EXPECT_EQ(Arrive({.node = 3}), "");
  EXPECT_TRUE(answers_.empty());
  EXPECT_THAT(Arrive({.node = 4}), HasSubstr("all 3 arrived"));
  ASSERT_EQ(answers_.size(), 3);
  for (const auto& answer : answers_) EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(barriers_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(BarrierTest, RepeatedArrivalsCountOnceAndAfterTheEndAreAnsweredAtOnce) {
  Arrive({.node = 2});
  Arrive({.node = 2});
  EXPECT_EQ(Arrive({.node = 3}), "");
  EXPECT_NE(Arrive({.node = 4}), "");
  EXPECT_EQ(answers_.size(), 3);
  EXPECT_EQ(Arrive({.node = 2}), "");
  ASSERT_EQ(answers_.size(), 1);
  EXPECT_TRUE(answers_[0].status.ok());
}

TEST_F(BarrierTest, DeadlineNamesWhoIsMissingAndWithdraws) {
  Arrive({.node = 2});
  Arrive({.node = 4, .after = absl::Milliseconds(500)});
  EXPECT_EQ(barriers_.NextDeadline(), kStart + absl::Seconds(1));
  state_.mutable_view()->mutable_nodes(1)->set_state(proto::Node::DEAD);
  state_.mutable_view()->mutable_nodes(1)->set_departure("declared dead at epoch 9");
  barriers_.Expire(kStart + absl::Seconds(1), answers_);
  ASSERT_EQ(answers_.size(), 1);
  EXPECT_EQ(answers_[0].request.from().node, NodeId(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0].status));
  EXPECT_THAT(
      std::string(answers_[0].status.message()),
      HasSubstr("2 of 3 arrived within 1s; not arrived: worker-1 (declared dead at epoch 9)"));
  // worker-0 has to arrive again.
  EXPECT_EQ(Arrive({.node = 3}), "");
  EXPECT_NE(Arrive({.node = 2}), "");
}

TEST_F(BarrierTest, TheDepartedHaveNotArrived) {
  Arrive({.node = 2});
  barriers_.OnDeparture(NodeId(2), answers_);
  ASSERT_EQ(answers_.size(), 1);
  EXPECT_TRUE(absl::IsAborted(answers_[0].status));
  Arrive({.node = 3});
  EXPECT_EQ(Arrive({.node = 4}), "");
}

TEST_F(BarrierTest, ANewRequestIsAnArrivalAtTheNextRound) {
  for (uint64_t request : {1, 2, 3}) {
    EXPECT_EQ(Arrive({.node = 2, .request = request, .participants = 2}), "");
    EXPECT_TRUE(answers_.empty());
    EXPECT_NE(Arrive({.node = 3, .request = request, .participants = 2}), "");
    EXPECT_EQ(answers_.size(), 2);
  }
}

TEST_F(BarrierTest, ProcessesThatCameLaterMeetLikeTheFirst) {
  Arrive({.node = 2, .request = 50, .participants = 2});
  EXPECT_NE(Arrive({.node = 3, .request = 60, .participants = 2}), "");
  // Their successors count their own requests from 1.
  EXPECT_EQ(Arrive({.node = 4, .request = 1, .participants = 2}), "");
  EXPECT_TRUE(answers_.empty());
}

TEST_F(BarrierTest, AfterAMissedDeadlineTheNextCallArrivesAnew) {
  Arrive({.node = 2, .request = 1, .participants = 2});
  barriers_.Expire(kStart + absl::Seconds(1), answers_);
  EXPECT_EQ(Arrive({.node = 2, .request = 2, .participants = 2}), "");
  EXPECT_NE(Arrive({.node = 3, .request = 1, .participants = 2}), "");
}

TEST_F(BarrierTest, ForgetsWhatTheDepartedWentThrough) {
  Arrive({.node = 2, .participants = 2});
  Arrive({.node = 3, .participants = 2});
  EXPECT_EQ(state_.record().barriers().at("b").request_ids().size(), 2u);
  barriers_.OnDeparture(NodeId(2), answers_);
  EXPECT_EQ(state_.record().barriers().at("b").request_ids().size(), 1u);
  barriers_.OnDeparture(NodeId(3), answers_);
  EXPECT_TRUE(state_.record().barriers().empty());
}

TEST_F(BarrierTest, RefusesDisagreementAndNonsense) {
  Arrive({.node = 2});
  Arrive({.node = 3, .participants = 2});
  ASSERT_EQ(answers_.size(), 1);
  EXPECT_THAT(std::string(answers_[0].status.message()), HasSubstr("all have to agree"));
  Arrive({.node = 3, .participants = 0});
  EXPECT_TRUE(absl::IsInvalidArgument(answers_.at(0).status));
}

}  // namespace
}  // namespace covey::scheduler
