// SPDX-License-Identifier: Apache-2.0
#include "server/queue_budget.h"
#include "absl/strings/string_view.h"

#include "gtest/gtest.h"

namespace covey::server {
namespace {

TEST(QueueBudget, AsksForACountOnceInAWhileAndRefusesBeyondTheLimit) {
  QueueBudget budget(100);
  int counts = 0;
  size_t bytes = 101;
  const auto check = [&] {
    return budget.Check([&] {
      ++counts;
      return bytes;
    });
  };
  for (uint64_t i = 1; i < QueueBudget::kRequestsPerCount; ++i) EXPECT_TRUE(check().ok());
  EXPECT_EQ(counts, 0);
  EXPECT_EQ(check().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(counts, 1);
  // The count is valid until the next one, which sees that the queue is shorter.
  bytes = 100;
  for (uint64_t i = 1; i < QueueBudget::kRequestsPerCount; ++i) EXPECT_FALSE(check().ok());
  EXPECT_TRUE(check().ok());
}

TEST(QueueBudget, ACountOfTheOwnerCountsAtOnce) {
  QueueBudget budget(100);
  budget.SetCount(101);
  const absl::Status status = budget.Check([] { return size_t{0}; });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("101 bytes wait in this loop, 100 are allowed"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace covey::server
