// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/tables_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/status/rows_view.h"
#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TablesViewTest, ShowsDefinitions) {
  proto::ListTablesReply tables;
  EXPECT_EQ(TablesText(tables, {}), "no tables yet\n");
  *tables.add_tables() = StatusForTests().view().tables(0);
  EXPECT_THAT(TablesText(tables, {}), HasSubstr("ssp:3 since epoch 4"));
  EXPECT_THAT(TablesText(tables, {}), Not(HasSubstr("waits for its initial values")));
  tables.mutable_tables(0)->mutable_initialization();
  EXPECT_THAT(TablesText(tables, {}), HasSubstr("hidden/weight waits for its initial values"));
  tables.mutable_tables(0)->clear_contract();
  EXPECT_THAT(TablesText(tables, {}), HasSubstr("buffered:2  nesterov"));
  EXPECT_THAT(TablesText(tables, {}), HasSubstr("replicated 2"));
  EXPECT_EQ(nlohmann::json::parse(TablesJson(tables, {}))["tables"][0]["spec"]["name"],
            "hidden/weight");
}

TEST(TablesViewTest, ShowsTheRowsOfSparseTables) {
  proto::StatusReply status = StatusForTests();
  EXPECT_THAT(TablesInUseText(status), Not(HasSubstr("EVICTED")));
  proto::Table& table = *status.mutable_view()->add_tables();
  table.set_id(7);
  table.mutable_spec()->set_name("items");
  table.mutable_spec()->mutable_sparse()->set_width(4);
  table.mutable_spec()->mutable_sparse()->set_rows_max(1000);
  table.mutable_spec()->mutable_sparse()->set_when_full(proto::SparseRows::EVICT);
  table.mutable_spec()->mutable_sparse()->set_evict_by(proto::EVICT_BY_COUNT);
  for (int node = 0; node < 2; ++node) {
    proto::TableRows& report = *status.mutable_nodes(node)->mutable_load()->add_rows();
    report.set_table(7);
    report.set_rows(400 + node);
    report.set_pending(20);
    report.set_evicted(3);
    report.set_refused(2);
    report.set_bytes(1 << 20);
  }
  EXPECT_THAT(TablesInUseText(status),
              ContainsRegex("items +801 +1,?000 +40 +6 +4 +2[.0]* MiB +evict by count +-\n"));
  proto::ListTablesReply tables;
  *tables.add_tables() = table;
  EXPECT_THAT(TablesText(tables, RowsOf(status)), HasSubstr("evict by count"));
  proto::TableSpec& spec = *tables.mutable_tables(0)->mutable_spec();
  spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
  EXPECT_THAT(TablesText(tables, {}), ContainsRegex("evict by count +of all pushes\n"));
  spec.mutable_sparse()->set_round_mean(proto::SparseRows::OF_HOLDERS);
  EXPECT_THAT(TablesText(tables, {}), ContainsRegex("evict by count +of holders\n"));
  const auto json = nlohmann::json::parse(TablesJson(tables, RowsOf(status)));
  EXPECT_EQ(json["rows"][0]["rows"], "801");
}

}  // namespace
}  // namespace covey::cli
