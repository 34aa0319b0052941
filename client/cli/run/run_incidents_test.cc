// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_incidents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

// Two servers, each the head of one shard and a replica of the other.
proto::StatusReply Healthy() {
  proto::StatusReply status;
  status.set_uptime_ms(10'000);
  for (const uint64_t id : {2, 3}) {
    proto::Node& node = *status.mutable_view()->add_nodes();
    node.set_id(id);
    node.set_role(proto::SERVER);
    node.set_state(proto::Node::ALIVE);
    node.set_name(id == 2 ? "server-0" : "server-1");
  }
  proto::Table& table = *status.mutable_view()->add_tables();
  table.set_id(1);
  for (const uint64_t head : {2, 3}) {
    proto::Shard& shard = *table.add_shards();
    shard.set_generation(5);
    shard.add_chain()->set_node(head);
    shard.add_chain()->set_node(5 - head);
  }
  return status;
}

std::string Text(const RunIncidents& incidents) {
  return absl::StrJoin(incidents.incidents(), "\n", [](std::string* out, const Incident& incident) {
    absl::StrAppend(out, incident.node, " ", incident.what);
  });
}

TEST(RunIncidentsTest, AQuietRunHasNone) {
  RunIncidents incidents;
  incidents.See(10, Healthy());
  incidents.See(11, Healthy());
  EXPECT_TRUE(incidents.losses().none());
  EXPECT_EQ(Text(incidents), "");
}

TEST(RunIncidentsTest, TellsAFailoverFromALossAndHowLongItTook) {
  RunIncidents incidents;
  incidents.See(10, Healthy());
  incidents.Died(10.5, "server-0", "killed by signal 9 (Killed)");
  proto::StatusReply status = Healthy();
  status.set_uptime_ms(11'000);
  status.mutable_view()->mutable_nodes(0)->set_state(proto::Node::DEAD);
  proto::Event& event = *status.add_events();
  event.set_at_ms(10'750);
  event.set_text("server-0 dead: connection refused");
  auto& shards = *status.mutable_view()->mutable_tables(0)->mutable_shards();
  shards[0].mutable_chain()->DeleteSubrange(0, 1);
  shards[1].mutable_chain()->DeleteSubrange(1, 1);
  incidents.See(11, status);
  EXPECT_EQ(incidents.losses().died, 1u);
  EXPECT_EQ(incidents.losses().failovers, 1u);
  EXPECT_EQ(incidents.losses().lost, 0u);
  EXPECT_NEAR(incidents.losses().failover_seconds, 0.25, 1e-6);
  EXPECT_THAT(Text(incidents), HasSubstr("1 shard failed over to replicas"));

  shards[0].mutable_chain(0)->set_node(9);
  shards[0].set_generation(7);
  incidents.See(12, status);
  EXPECT_EQ(incidents.losses().lost, 1u);
}

TEST(RunIncidentsTest, TellsInTheOrderInWhichItHappened) {
  RunIncidents incidents;
  incidents.Note(2, "worker-0", "second");
  incidents.Note(1, "worker-1", "first");
  incidents.Note(2, "worker-2", "third");
  EXPECT_EQ(Text(incidents), "worker-1 first\nworker-0 second\nworker-2 third");
}

TEST(RunIncidentsTest, CountsMovesAndDrains) {
  RunIncidents incidents;
  proto::StatusReply status = Healthy();
  incidents.See(10, status);
  status.mutable_view()->mutable_nodes(0)->set_draining(true);
  incidents.See(11, status);
  status.mutable_view()->mutable_tables(0)->mutable_shards(0)->mutable_chain()->DeleteSubrange(0,
                                                                                               1);
  incidents.See(12, status);
  status.mutable_view()->mutable_nodes(0)->set_state(proto::Node::LEFT);
  incidents.See(13, status);
  EXPECT_EQ(incidents.losses().moved, 1u);
  EXPECT_EQ(incidents.losses().failovers, 0u);
  EXPECT_EQ(incidents.losses().drained, 1u);
}

TEST(RunIncidentsTest, MembersThatTellOfTheSameRecoveryCountOnce) {
  RunIncidents incidents;
  proto::StatusReply status = Healthy();
  for (const uint64_t id : {7, 8}) {
    proto::NodeStatus& node = *status.add_nodes();
    node.set_node(id);
    node.mutable_progress()->set_recoveries(1);
    node.mutable_progress()->set_recovery_seconds(0.5);
  }
  incidents.See(10, status);
  EXPECT_EQ(incidents.losses().recoveries, 1u);
  EXPECT_EQ(incidents.losses().recovery_seconds, 0.5);
}

TEST(RunIncidentsTest, ARecoveryCountsThoughNoWorkerHasToldOfIt) {
  RunIncidents incidents;
  proto::StatusReply status = Healthy();
  proto::Group& group = *status.mutable_view()->add_groups();
  group.set_id(1);
  group.set_generation(1);
  incidents.See(10, status);
  EXPECT_EQ(incidents.losses().recoveries, 0u);
  for (const uint64_t generation : {2, 2, 4}) {
    group.set_generation(generation);
    group.set_recovery_generation(generation);
    incidents.See(11, status);
  }
  EXPECT_EQ(incidents.losses().recoveries, 2u);
  // The workers report the same recoveries.
  status.add_nodes()->mutable_progress()->set_recoveries(2);
  incidents.See(12, status);
  EXPECT_EQ(incidents.losses().recoveries, 2u);
}

}  // namespace
}  // namespace covey::cli
