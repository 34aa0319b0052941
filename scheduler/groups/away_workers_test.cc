// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/away_workers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Groups of 40 and of 2 workers, nodes 1 to 40 and 41, 42, and node 43, which is in none.
class AwayWorkersTest : public ::testing::Test {
 protected:
  AwayWorkersTest() {
    for (uint32_t id = 1; id <= 43; ++id) {
      proto::Node& node = *state_.mutable_view()->add_nodes();
      node.set_id(id);
      node.set_role(proto::WORKER);
      node.set_state(proto::Node::ALIVE);
      node.set_name(absl::StrCat("worker-", id));
    }
    for (uint32_t id = 1; id <= 2; ++id) {
      proto::Group& group = *state_.mutable_view()->add_groups();
      group.set_id(id);
      group.set_state(proto::Group::ACTIVE);
    }
    for (uint32_t id = 1; id <= 42; ++id) {
      state_.mutable_view()->mutable_groups(id <= 40 ? 0 : 1)->add_members(id);
    }
  }

  void Hear(uint64_t node, const std::string& reason, uint32_t left_ms) {
    proto::HeartbeatRequest beat;
    beat.mutable_away()->set_reason(reason);
    beat.mutable_away()->set_left_ms(left_ms);
    away_.OnHeartbeat(now_, NodeId(node), beat);
  }
  // "node: reason, left".
  std::vector<std::string> ToldTo(uint64_t node) {
    proto::HeartbeatReply reply;
    away_.Tell(now_, NodeId(node), reply);
    std::vector<std::string> told;
    for (const proto::AwayWorker& worker : reply.away()) {
      told.push_back(
          absl::StrCat(worker.node(), ": ", worker.away().reason(), ", ", worker.away().left_ms()));
    }
    return told;
  }

  TestState state_;
  AwayWorkers away_{state_};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(AwayWorkersTest, MembersOfItsGroupAreTold) {
  EXPECT_THAT(ToldTo(41), IsEmpty());
  Hear(42, "evaluation", 60'000);
  EXPECT_THAT(ToldTo(41), ElementsAre("42: evaluation, 60000"));
  EXPECT_THAT(ToldTo(42), ElementsAre("42: evaluation, 60000")) << "itself, too";
  EXPECT_THAT(ToldTo(43), IsEmpty()) << "it is in no group";
  now_ += absl::Seconds(10);
  EXPECT_THAT(ToldTo(41), ElementsAre("42: evaluation, 50000"));
  Hear(42, "saving", 5'000);
  EXPECT_THAT(ToldTo(41), ElementsAre("42: saving, 5000"));
}

TEST_F(AwayWorkersTest, ItIsBackWhenItSaysNothingOrItsTimeIsOver) {
  Hear(42, "evaluation", 60'000);
  EXPECT_TRUE(away_.IsAway(now_, NodeId(42)));
  away_.OnHeartbeat(now_, NodeId(42), proto::HeartbeatRequest());
  EXPECT_FALSE(away_.IsAway(now_, NodeId(42)));
  EXPECT_THAT(ToldTo(41), IsEmpty());
  Hear(42, "evaluation", 60'000);
  now_ += absl::Minutes(1);
  EXPECT_FALSE(away_.IsAway(now_, NodeId(42)));
  EXPECT_THAT(ToldTo(41), IsEmpty());
}

TEST_F(AwayWorkersTest, ADeadWorkerIsNotAway) {
  Hear(42, "evaluation", 60'000);
  away_.OnDeparture(NodeId(42));
  EXPECT_THAT(ToldTo(41), IsEmpty());
}

TEST_F(AwayWorkersTest, OfOtherGroupsTheOneThatIsAwayForTheLongest) {
  Hear(2, "evaluation", 60'000);
  Hear(3, "saving", 90'000);
  Hear(4, "evaluation", 70'000);
  Hear(43, "compilation", 3'000'000);
  EXPECT_THAT(ToldTo(41), ElementsAre("3: saving, 90000"));
  Hear(42, "warming up", 1'000);
  EXPECT_THAT(ToldTo(41), ElementsAre("42: warming up, 1000", "3: saving, 90000"));
}

TEST_F(AwayWorkersTest, AWorkerThatChangesItsGroupIsAMemberOfTheNewOne) {
  Hear(3, "saving", 90'000);
  Hear(42, "evaluation", 60'000);
  EXPECT_THAT(ToldTo(41), ElementsAre("42: evaluation, 60000", "3: saving, 90000"));
  {
    Transaction change(state_);
    proto::ClusterView& view = change.EditView();
    view.mutable_groups(1)->mutable_members()->RemoveLast();
    view.mutable_groups(0)->add_members(42);
    change.Add(WorkerStandsBy{.worker = "worker-42"});
    change.Commit();
  }
  EXPECT_THAT(ToldTo(41), ElementsAre("3: saving, 90000"));
  EXPECT_THAT(ToldTo(42), ElementsAre("3: saving, 90000", "42: evaluation, 60000"));
  away_.OnDeparture(NodeId(3));
  EXPECT_THAT(ToldTo(41), ElementsAre("42: evaluation, 60000"));
}

// Each of 8192 workers says in its heartbeat that it is away, and is told whom it waits for: with a
// look at all members for each heartbeat, this takes minutes.
TEST(AwayWorkersOfALargeJobTest, EachHeartbeatCostsLittle) {
  constexpr uint32_t kWorkers = 2 * kGroupMembersMax;
  TestState state;
  AwayWorkers away(state);
  for (uint32_t id = 1; id <= 2; ++id) {
    proto::Group& group = *state.mutable_view()->add_groups();
    group.set_id(id);
    group.set_state(proto::Group::ACTIVE);
  }
  proto::HeartbeatRequest beat;
  beat.mutable_away()->set_reason("evaluation");
  for (uint32_t id = 1; id <= kWorkers; ++id) {
    state.mutable_view()->mutable_groups(static_cast<int>(id % 2))->add_members(id);
    beat.mutable_away()->set_left_ms(1000 + id);
    away.OnHeartbeat(absl::UnixEpoch(), NodeId(id), beat);
  }
  for (int round = 0; round < 10; ++round) {
    for (uint32_t id = 1; id <= kWorkers; ++id) {
      beat.mutable_away()->set_left_ms(1000 + id);
      away.OnHeartbeat(absl::UnixEpoch(), NodeId(id), beat);
      proto::HeartbeatReply reply;
      away.Tell(absl::UnixEpoch(), NodeId(id), reply);
      ASSERT_EQ(reply.away_size(), static_cast<int>(kAwayToldMax) + 1);
    }
  }
}

TEST_F(AwayWorkersTest, WhatIsToldIsBounded) {
  for (uint32_t id = 1; id <= 42; ++id) Hear(id, "compilation", 1000 * id);
  const std::vector<std::string> told = ToldTo(1);
  ASSERT_EQ(told.size(), kAwayToldMax + 1);
  EXPECT_EQ(told[0], "40: compilation, 40000") << "those that are away for the longest";
  EXPECT_EQ(told.back(), "42: compilation, 42000");
  Hear(42, std::string(10'000, 'x'), ~uint32_t{0});
  EXPECT_THAT(ToldTo(41)[0], absl::StrCat("42: ", std::string(kNameBytesMax, 'x'), ", ",
                                          absl::ToInt64Milliseconds(kAwayMax)));
}

TEST_F(AwayWorkersTest, StatusShowsThem) {
  Hear(42, "evaluation", 60'000);
  proto::StatusReply reply;
  for (const uint64_t id : {41, 42}) reply.add_nodes()->set_node(id);
  away_.FillStatus(now_, reply);
  EXPECT_FALSE(reply.nodes(0).has_away());
  EXPECT_EQ(reply.nodes(1).away().reason(), "evaluation");
  EXPECT_EQ(reply.nodes(1).away().left_ms(), 60'000u);
}

}  // namespace
}  // namespace covey::scheduler
