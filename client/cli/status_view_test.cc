#include "client/cli/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/status_fixture.h"
#include "client/cli/text_table.h"

namespace covey::cli {
namespace {

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
  EXPECT_THAT(text, HasSubstr("hidden/weight  784x128  ssp:3 since epoch 4  nesterov        2  "
                              "392 KiB       10          0          1  "
                              "0.50 implicit + 0.40 of 0.90\n"));
  EXPECT_THAT(text, HasSubstr("4.2 s  worker-2 dead: silent for 2.6 s\n"));
}

TEST(StatusViewTest, TextShowsHowGroupsShareTheirWork) {
  const std::string text = StatusText(StatusForTests());
  EXPECT_THAT(text, HasSubstr("WORKER    GROUP/RANK  SHARE  STEP  SAMPLES/STEP  COMPUTE   WAIT  "
                              "ASIDE  SLOWNESS  PACE\n"));
  EXPECT_THAT(text, HasSubstr("worker-0         0/0   25 %    30            60    60 ms  10 ms  "
                              "    4     2.50x  straggler\n"));
  EXPECT_THAT(text, HasSubstr("worker-1         0/1   75 %    31           100    40 ms  30 ms  "
                              "    0     1.00x  steady\n"));
  EXPECT_THAT(text, HasSubstr("0  active           1        2  25:75 %  1, then 20 ms    31    "
                              "3,904      2,500   0.4        1.5\n"));
  EXPECT_THAT(text, HasSubstr("1  broken           1        2  even     all"));
}

TEST(StatusViewTest, ATableNobodyPushedToHasNoFigures) {
  proto::StatusReply status = StatusForTests();
  status.mutable_nodes(0)->clear_load();
  status.mutable_view()->mutable_tables(0)->clear_contract();
  EXPECT_THAT(StatusText(status), HasSubstr("buffered:2  nesterov        2  392 KiB        -"));
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

TEST(StatusViewTest, KeepsTheNewestEvents) {
  proto::StatusReply status = StatusForTests();
  KeepLastEvents(status, 1);
  ASSERT_EQ(status.events_size(), 1);
  EXPECT_EQ(status.events(0).sequence(), 2u);
  KeepLastEvents(status, 5);
  EXPECT_EQ(status.events_size(), 1);
}

TEST(StatusViewTest, Tables) {
  proto::ListTablesReply tables;
  EXPECT_EQ(TablesText(tables), "no tables yet\n");
  *tables.add_tables() = StatusForTests().view().tables(0);
  EXPECT_THAT(TablesText(tables), HasSubstr("ssp:3 since epoch 4"));
  tables.mutable_tables(0)->clear_contract();
  EXPECT_THAT(TablesText(tables), HasSubstr("buffered:2  nesterov"));
  EXPECT_EQ(nlohmann::json::parse(TablesJson(tables))["tables"][0]["spec"]["name"],
            "hidden/weight");
}

}  // namespace
}  // namespace covey::cli
