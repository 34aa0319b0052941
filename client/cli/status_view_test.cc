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
  EXPECT_THAT(text, HasSubstr("0  active        2    31    3,904      2,500   0.4        1.5\n"));
  EXPECT_THAT(text, HasSubstr("hidden/weight  784x128  buffered:2  nesterov        2  392 KiB\n"));
  EXPECT_THAT(text, HasSubstr("4.2 s  worker-2 dead: silent for 2.6 s\n"));
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
  EXPECT_EQ(json["summary"]["alive"], 3);
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
  tables.mutable_tables(0)->mutable_spec()->mutable_contract()->set_kind(proto::Contract::SSP);
  EXPECT_THAT(TablesText(tables), HasSubstr("ssp:0"));
  EXPECT_EQ(nlohmann::json::parse(TablesJson(tables))["tables"][0]["spec"]["name"],
            "hidden/weight");
}

}  // namespace
}  // namespace covey::cli
