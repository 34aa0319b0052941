// SPDX-License-Identifier: Apache-2.0
#include "client/joined_result.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/status/status.h"

namespace covey::client {
namespace {

// Of operations on tables "a", "b" and "c".
class JoinedResultTest : public testing::Test {
 protected:
  JoinedResult joined_{{"a", "b", "c"}, [this](const OperationResult& result) {
                         ++done_;
                         result_ = result;
                       }};
  int done_ = 0;
  OperationResult result_;
};

TEST_F(JoinedResultTest, IsOverAllTablesWhenTheLastOneHasEnded) {
  joined_.End(1, {.version = Version(5),
                  .staleness = 1,
                  .age = absl::Seconds(3),
                  .samples = 10,
                  .rows_refused = 2,
                  .durable = true});
  joined_.End(0, {.version = Version(4), .staleness = 7, .duplicate = true, .durable = true});
  EXPECT_EQ(done_, 0);
  joined_.End(2, {.version = Version(6), .age = absl::Seconds(1), .rows_refused = 3});
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(result_.status.ok());
  EXPECT_EQ(result_.version, Version(4));
  EXPECT_EQ(result_.staleness, 7);
  EXPECT_EQ(result_.age, absl::Seconds(3));
  EXPECT_EQ(result_.samples, 10);
  EXPECT_EQ(result_.rows_refused, 5);
  EXPECT_TRUE(result_.duplicate);
  EXPECT_FALSE(result_.discarded);
  EXPECT_FALSE(result_.durable) << "c's push is not";
}

TEST_F(JoinedResultTest, NamesTheFirstTableThatHasFailed) {
  joined_.End(2, {.status = absl::UnavailableError("gone")});
  joined_.End(1, {.status = absl::DeadlineExceededError("too late")});
  EXPECT_EQ(done_, 0) << "the operation of a still uses its memory";
  joined_.End(0, {});
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(result_.status, absl::DeadlineExceededError("table 'b': too late"));
}

TEST_F(JoinedResultTest, NamesTheTableOnce) {
  joined_.End(0, {.status = absl::NotFoundError("table 'a' was dropped")});
  joined_.End(1, {});
  joined_.End(2, {});
  EXPECT_EQ(result_.status, absl::NotFoundError("table 'a' was dropped"));
}

}  // namespace
}  // namespace covey::client
