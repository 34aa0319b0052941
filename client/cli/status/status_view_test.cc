// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/console/text_table.h"
#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(TextTableTest, AlignsNumbersToTheRight) {
  TextTable table({"NAME", "COUNT"});
  EXPECT_TRUE(table.empty());
  table.Add({"a", "1"});
  table.Add({"long", "1,000"});
  table.Add({"b", "-"});
  EXPECT_EQ(table.Render(), "NAME  COUNT\na         1\nlong  1,000\nb         -\n");
}

TEST(StatusViewTest, DeadNodesAndBrokenGroupsAreProblems) {
  EXPECT_THAT(Problems(StatusForTests()),
              ElementsAre("worker-2 is dead: silent for 2.6 s",
                          "group 1 is broken: worker-2 dead: silent for 2.6 s"));
  EXPECT_THAT(Problems(proto::StatusReply()), IsEmpty());
}

TEST(StatusViewTest, TextShowsNodesGroupsTablesAndEvents) {
  const std::string text = StatusText(StatusForTests());
  EXPECT_THAT(text, HasSubstr("job mnist, epoch 5, up 12 s: unhealthy\n"));
  EXPECT_THAT(text, HasSubstr("worker-0  alive   0.1 s         0/0       77  h     z/r\n"));
  EXPECT_THAT(text, HasSubstr("worker-2  dead        -         1/0"));
  EXPECT_THAT(text, HasSubstr("evicted from group 0: too slow\n"));
  EXPECT_THAT(text, HasSubstr("hidden/weight  784x128  ssp:3 since epoch 4  nesterov   "
                              "replicated 2       2  392 KiB  whole, too few servers       10  "
                              "        0          1  0.50 implicit + 0.40 of 0.90\n"));
  EXPECT_THAT(text, HasSubstr("4.2 s  worker-2 dead: silent for 2.6 s\n"));
}

TEST(StatusViewTest, TextShowsHowGroupsShareTheirWork) {
  const std::string text = StatusText(StatusForTests());
  EXPECT_THAT(text, HasSubstr("WORKER    GROUP/RANK  SHARE  STEP  SAMPLES/STEP  INPUT  COMPUTE  "
                              "GROUP WAIT  SERVER WAIT  ASIDE  SLOWNESS  PACE\n"));
  EXPECT_THAT(text, HasSubstr("worker-0         0/0   25 %    30            60  20 ms    40 ms  "
                              "     10 ms         0 us      4     2.50x  straggler\n"));
  EXPECT_THAT(text, HasSubstr("worker-1         0/1   75 %    31           100   0 us    40 ms  "
                              "     10 ms        20 ms      0     1.00x  steady\n"));
  EXPECT_THAT(text, HasSubstr("0  active           1        2  25:75 %  1, then 20 ms    31    "
                              "3,904      2,500   0.4        1.5\n"));
  EXPECT_THAT(text, HasSubstr("1  broken           1        2  even     all"));
}

TEST(StatusViewTest, ATableNobodyPushedToHasNoFigures) {
  proto::StatusReply status = StatusForTests();
  status.mutable_nodes(0)->clear_load();
  status.mutable_view()->mutable_tables(0)->clear_contract();
  EXPECT_THAT(StatusText(status),
              HasSubstr("buffered:2  nesterov   replicated 2       2  392 KiB  whole"));
}

TEST(StatusViewTest, SharesOfLargeGroupsAreCutShort) {
  proto::StatusReply status = StatusForTests();
  proto::Group& group = *status.mutable_view()->mutable_groups(0);
  for (int i = 0; i < 8; ++i) group.add_members(100 + i);
  for (int i = 0; i < 8; ++i) group.add_shares(1000);
  EXPECT_THAT(StatusText(status), HasSubstr("5:15:10:10:10:10:10:10:... %"));
}

TEST(StatusViewTest, ATableOnSeveralServersIsOne) {
  proto::StatusReply status = StatusForTests();
  proto::TableAsynchrony& other = *status.mutable_nodes(1)->mutable_load()->add_tables();
  other.set_table(1);
  other.set_updates(30);
  other.set_staleness(3);
  other.set_discarded(2);
  other.set_implicit_momentum(0.7);
  other.set_target_momentum(0.9);
  EXPECT_THAT(StatusText(status),
              HasSubstr("40          2        2.5  0.65 implicit + 0.10 of 0.90\n"));
}

TEST(StatusViewTest, AnEmptyClusterSaysWhatItWaitsFor) {
  proto::StatusReply status;
  status.mutable_view()->set_waiting_for("2 servers");
  EXPECT_THAT(StatusText(status), HasSubstr(": healthy\n  waiting for 2 servers\n"));
}

TEST(StatusViewTest, JsonHasTheNamesOfTheProtocolAndASummary) {
  const auto json = nlohmann::json::parse(StatusJson(StatusForTests()));
  EXPECT_EQ(json["view"]["job_name"], "mnist");
  EXPECT_EQ(json["nodes"][0]["silent_ms"], "40");
  EXPECT_EQ(json["view"]["tables"][0]["spec"]["optimizer"]["momentum"], 0.0) << "defaults too";
  EXPECT_EQ(json["summary"]["healthy"], false);
  EXPECT_EQ(json["summary"]["problems"].size(), 2u);
  EXPECT_EQ(json["nodes"][1]["pace"]["state"], "STRAGGLER");
  EXPECT_EQ(json["view"]["groups"][0]["shares"][1], 1500);
  EXPECT_EQ(json["summary"]["alive"], 4);
  EXPECT_EQ(json["summary"]["left"], 1);
  EXPECT_EQ(json["summary"]["broken_groups"], 1);
}

TEST(StatusViewTest, ShardsWithTooFewReplicasAreAProblem) {
  proto::StatusReply status = StatusForTests();
  proto::Node& server = *status.mutable_view()->add_nodes();
  server.set_id(20);
  server.set_name("server-1");
  server.set_role(proto::SERVER);
  server.set_state(proto::Node::ALIVE);
  proto::Table& table = *status.mutable_view()->mutable_tables(0);
  table.mutable_shards(0)->add_chain()->set_node(20);
  EXPECT_THAT(Problems(status),
              Contains("table 'hidden/weight': degraded: 1 of 2 shards short of replicas"));
  proto::Replica& joining = *table.mutable_shards(1)->add_chain();
  joining.set_node(20);
  joining.set_joining(true);
  EXPECT_THAT(StatusText(status), HasSubstr("1 of 2 shards short of replicas, 1 joining"));
  const auto json = nlohmann::json::parse(StatusJson(status))["summary"]["replication"][0];
  EXPECT_EQ(json["shards_short"], 1);
  EXPECT_EQ(json["whole"], false);
  joining.set_joining(false);
  EXPECT_EQ(Problems(status).size(), 2u);
  table.mutable_spec()->set_durability(proto::MEMORY);
  table.mutable_shards(0)->clear_chain();
  EXPECT_THAT(Problems(status), Contains("table 'hidden/weight': 1 of 2 shards without a server"));
}

TEST(StatusViewTest, WhoDrainsAndWhoFailedIsTold) {
  proto::StatusReply status = StatusForTests();
  status.mutable_view()->mutable_nodes(0)->set_draining(true);
  const auto json = nlohmann::json::parse(StatusJson(status));
  EXPECT_EQ(json["summary"]["draining"].size(), 1u);
  EXPECT_EQ(json["summary"]["failures"][0]["node"], "worker-2");
  EXPECT_EQ(json["summary"]["failures"][0]["replaced"], false);
  proto::Node& heir = *status.mutable_view()->add_nodes();
  heir.set_id(99);
  heir.set_name("worker-2");
  heir.set_state(proto::Node::ALIVE);
  EXPECT_EQ(Problems(status).size(), 1u) << "a dead node that was replaced is no problem";
}

TEST(StatusViewTest, KeepsTheNewestEvents) {
  proto::StatusReply status = StatusForTests();
  KeepLastEvents(status, 1);
  ASSERT_EQ(status.events_size(), 1);
  EXPECT_EQ(status.events(0).sequence(), 2u);
  KeepLastEvents(status, 5);
  EXPECT_EQ(status.events_size(), 1);
}

TEST(StatusViewTest, TextSaysWhoIsAwayAndWhy) {
  proto::StatusReply status = StatusForTests();
  for (proto::NodeStatus& node : *status.mutable_nodes()) {
    if (node.node() != 4) continue;
    node.mutable_away()->set_reason("evaluation");
    node.mutable_away()->set_left_ms(258'000);
  }
  EXPECT_THAT(StatusText(status), HasSubstr("away: evaluation, for at most 4 min 18 s more\n"));
}

}  // namespace
}  // namespace covey::cli
