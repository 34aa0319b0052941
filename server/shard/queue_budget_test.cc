// SPDX-License-Identifier: Apache-2.0
#include "server/shard/queue_budget.h"

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using Request = QueueBudget::Request;

TEST(QueueBudget, AddsUpWhatTheShardsReport) {
  QueueBudget budget(100);
  budget.Change({}, {.others = 60});
  budget.Change({}, {.gradients = 30, .others = 10});
  EXPECT_TRUE(budget.Check(Request::kUnawaited).ok());
  budget.Change({.gradients = 30, .others = 10}, {.gradients = 30, .readers = 1, .others = 10});
  const absl::Status status = budget.Check(Request::kUnawaited);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("101 bytes wait in this loop, 100 are allowed"),
            absl::string_view::npos);
  budget.Change({.others = 60}, {});
  EXPECT_TRUE(budget.Check(Request::kUnawaited).ok());
}

TEST(QueueBudget, WhatWaitsForARequestDoesNotCountForIt) {
  QueueBudget budget(100);
  budget.Change({}, {.gradients = 60, .readers = 60, .others = 40});
  EXPECT_FALSE(budget.Check(Request::kUnawaited).ok());
  EXPECT_TRUE(budget.Check(Request::kWaitingReader).ok());
  EXPECT_TRUE(budget.Check(Request::kAwaited).ok());
  budget.Change({.readers = 60}, {.readers = 61});
  EXPECT_FALSE(budget.Check(Request::kWaitingReader).ok());
  EXPECT_TRUE(budget.Check(Request::kAwaited).ok());
  budget.Change({.others = 40}, {.others = 101});
  EXPECT_FALSE(budget.Check(Request::kAwaited).ok());
}

TEST(QueueBudget, AnotherMaximumHoldsFromNowOn) {
  QueueBudget budget(100);
  budget.Change({}, {.others = 60});
  budget.SetMax(50);
  const absl::Status status = budget.Check(Request::kAwaited);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("60 bytes wait in this loop, 50 are allowed"),
            absl::string_view::npos);
  budget.SetMax(60);
  EXPECT_TRUE(budget.Check(Request::kAwaited).ok());
}

}  // namespace
}  // namespace covey::server
