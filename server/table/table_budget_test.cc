// SPDX-License-Identifier: Apache-2.0
#include "server/table/table_budget.h"

#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

TEST(TableBudget, RefusesWhatDoesNotFit) {
  TableBudget budget(100);
  TableBudget::Share first(&budget);
  TableBudget::Share second(&budget);
  EXPECT_TRUE(first.Reserve(60).ok());
  const absl::Status status = second.Reserve(41);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(
      status.message().find("needs 41 bytes, and the tables of this server take 60 of the 100"),
      absl::string_view::npos);
  EXPECT_NE(status.message().find("--table-bytes-max"), absl::string_view::npos);
  EXPECT_TRUE(second.Reserve(40).ok());
}

TEST(TableBudget, GivesBackWhatAShareLetsGo) {
  TableBudget budget(100);
  TableBudget::Share first(&budget);
  {
    TableBudget::Share gone(&budget);
    EXPECT_TRUE(gone.Reserve(100).ok());
    EXPECT_FALSE(first.Reserve(1).ok());
  }
  EXPECT_TRUE(first.Reserve(100).ok());
  first.Set(30);
  EXPECT_TRUE(first.CheckRoom(70).ok());
  EXPECT_FALSE(first.CheckRoom(71).ok());
  EXPECT_TRUE(first.Reserve(20).ok());
  EXPECT_TRUE(first.CheckRoom(80).ok());
}

TEST(TableBudget, CountsWhatHasGrownBeyondIt) {
  TableBudget budget(100);
  TableBudget::Share rows(&budget);
  rows.Set(150);
  EXPECT_TRUE(rows.CheckRoom(0).ok());
  EXPECT_FALSE(rows.CheckRoom(1).ok());
  EXPECT_FALSE(TableBudget::Share(&budget).Reserve(1).ok());
}

TEST(TableBudget, HasNoLimitWithoutOne) {
  TableBudget::Share share(nullptr);
  EXPECT_TRUE(share.Reserve(~uint64_t{0}).ok());
  EXPECT_TRUE(share.CheckRoom(1).ok());
}

TEST(TableBudget, LoopsNeverTakeMoreTogether) {
  TableBudget budget(1000);
  std::vector<std::thread> loops;
  for (int i = 0; i < 4; ++i) {
    loops.emplace_back([&budget] {
      for (int k = 0; k < 1000; ++k) {
        TableBudget::Share share(&budget);
        // 400 of one loop and of another fit, and those of a third one do not.
        if (share.Reserve(400).ok()) {
          EXPECT_FALSE(share.CheckRoom(601).ok());
        }
      }
    });
  }
  for (std::thread& loop : loops) loop.join();
  EXPECT_TRUE(TableBudget::Share(&budget).Reserve(1000).ok());
}

TEST(TableBudget, AnotherMaximumHoldsFromNowOn) {
  TableBudget budget(TableBudget::kNoLimit);
  TableBudget::Share share(&budget);
  EXPECT_TRUE(share.Reserve(100).ok());
  EXPECT_TRUE(share.CheckRoom(TableBudget::kNoLimit - 100).ok());
  budget.SetMax(80);
  EXPECT_FALSE(share.CheckRoom(1).ok());
  EXPECT_FALSE(share.Reserve(101).ok());
  // What it has, it keeps.
  EXPECT_TRUE(share.Reserve(90).ok());
  budget.SetMax(120);
  EXPECT_TRUE(share.CheckRoom(30).ok());
  EXPECT_FALSE(share.CheckRoom(31).ok());
}

}  // namespace
}  // namespace covey::server
