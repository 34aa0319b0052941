// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/tables_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TablesViewTest, ShowsDefinitions) {
  proto::ListTablesReply tables;
  EXPECT_EQ(TablesText(tables), "no tables yet\n");
  *tables.add_tables() = StatusForTests().view().tables(0);
  EXPECT_THAT(TablesText(tables), HasSubstr("ssp:3 since epoch 4"));
  EXPECT_THAT(TablesText(tables), Not(HasSubstr("waits for its initial values")));
  tables.mutable_tables(0)->mutable_initialization();
  EXPECT_THAT(TablesText(tables), HasSubstr("hidden/weight waits for its initial values"));
  tables.mutable_tables(0)->clear_contract();
  EXPECT_THAT(TablesText(tables), HasSubstr("buffered:2  nesterov"));
  EXPECT_THAT(TablesText(tables), HasSubstr("replicated 2"));
  EXPECT_EQ(nlohmann::json::parse(TablesJson(tables))["tables"][0]["spec"]["name"],
            "hidden/weight");
}

}  // namespace
}  // namespace covey::cli
