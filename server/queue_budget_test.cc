// SPDX-License-Identifier: Apache-2.0
#include "server/queue_budget.h"

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using Counted = QueueBudget::Counted;

TEST(QueueBudget, AddsUpWhatTheShardsReport) {
  QueueBudget budget(100);
  budget.Change(0, 60);
  budget.Change(0, 40);
  EXPECT_TRUE(budget.Check(Counted::kAll).ok());
  budget.Change(40, 41);
  const absl::Status status = budget.Check(Counted::kAll);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("101 bytes wait in this loop, 100 are allowed"),
            absl::string_view::npos);
  budget.Change(60, 0);
  EXPECT_TRUE(budget.Check(Counted::kAll).ok());
}

TEST(QueueBudget, WhatIsHeldForARequestDoesNotCountForIt) {
  QueueBudget budget(100);
  budget.Change(0, 160);
  budget.ChangeHeld(0, 60);
  EXPECT_FALSE(budget.Check(Counted::kAll).ok());
  EXPECT_TRUE(budget.Check(Counted::kAllButHeld).ok());
  budget.ChangeHeld(60, 59);
  EXPECT_FALSE(budget.Check(Counted::kAllButHeld).ok());
}

TEST(QueueBudget, AnotherMaximumHoldsFromNowOn) {
  QueueBudget budget(100);
  budget.Change(0, 60);
  budget.SetMax(50);
  EXPECT_EQ(budget.Check(Counted::kAll).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(
      budget.Check(Counted::kAll).message().find("60 bytes wait in this loop, 50 are allowed"),
      absl::string_view::npos);
  budget.SetMax(60);
  EXPECT_TRUE(budget.Check(Counted::kAll).ok());
}

}  // namespace
}  // namespace covey::server
