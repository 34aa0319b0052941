// SPDX-License-Identifier: Apache-2.0
#include "server/queue_budget.h"

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

TEST(QueueBudget, AddsUpWhatTheShardsReport) {
  QueueBudget budget(100);
  budget.Change(0, 60);
  budget.Change(0, 40);
  EXPECT_TRUE(budget.Check().ok());
  budget.Change(40, 41);
  const absl::Status status = budget.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("101 bytes wait in this loop, 100 are allowed"),
            absl::string_view::npos);
  budget.Change(60, 0);
  EXPECT_TRUE(budget.Check().ok());
}

TEST(QueueBudget, AnotherMaximumHoldsFromNowOn) {
  QueueBudget budget(100);
  budget.Change(0, 60);
  budget.SetMax(50);
  EXPECT_EQ(budget.Check().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(budget.Check().message().find("60 bytes wait in this loop, 50 are allowed"),
            absl::string_view::npos);
  budget.SetMax(60);
  EXPECT_TRUE(budget.Check().ok());
}

}  // namespace
}  // namespace covey::server
