// SPDX-License-Identifier: Apache-2.0
#include "client/engine/durability/flush_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace covey::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Flush = FlushTracker::Flush;

constexpr absl::Time kStart = absl::UnixEpoch();

class FlushTrackerTest : public ::testing::Test {
 protected:
  void Add(uint64_t before_operation, absl::Duration patience = absl::Seconds(5)) {
    tracker_.Add({.before_operation = before_operation,
                  .before_request = 0,
                  .deadline = kStart + patience,
                  .done = [this](absl::Time, const absl::Status& status, Outbox&) {
                    ended_.push_back(status);
                  }});
  }
  // Operations with smaller numbers have ended.
  void Check(uint64_t oldest, absl::Time now = kStart) {
    tracker_.Check(
        now,
        [oldest](const Flush& flush) {
          return oldest < flush.before_operation ? absl::DeadlineExceededError("one is left")
                                                 : absl::OkStatus();
        },
        outbox_);
  }

  Outbox outbox_;
  FlushTracker tracker_;
  std::vector<absl::Status> ended_;
};

TEST_F(FlushTrackerTest, EndsEachFlushWhenWhatItWaitsForIsOver) {
  Add(3);
  Add(1);
  Check(2);
  EXPECT_EQ(ended_.size(), 1u);
  Check(3);
  EXPECT_THAT(ended_, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_EQ(tracker_.next_deadline(), absl::InfiniteFuture());
}

TEST_F(FlushTrackerTest, SaysWhatIsLeftAtTheDeadline) {
  Add(3, absl::Seconds(2));
  EXPECT_EQ(tracker_.next_deadline(), kStart + absl::Seconds(2));
  Check(2, kStart + absl::Seconds(1));
  EXPECT_TRUE(ended_.empty());
  Check(2, kStart + absl::Seconds(2));
  EXPECT_THAT(ended_, ElementsAre(absl::DeadlineExceededError("one is left")));
}

TEST_F(FlushTrackerTest, TellsOfLossesOnceAndNamesOneThatIsLostForSure) {
  tracker_.NoteLost(absl::AbortedError("perhaps"));
  tracker_.NoteLost(absl::DataLossError("for sure"));
  tracker_.NoteLost(absl::DataLossError("another"));
  Add(1);
  Add(1);
  Check(1);
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(ended_[0].message()), HasSubstr("3 pushes were lost"));
  EXPECT_THAT(std::string(ended_[0].message()), HasSubstr("for sure"));
  EXPECT_TRUE(ended_[1].ok());
}

TEST_F(FlushTrackerTest, AFlushThatStartsWhileOneEndsIsNotLost) {
  tracker_.Add({.before_operation = 0,
                .before_request = 0,
                .deadline = kStart + absl::Seconds(1),
                .done = [this](absl::Time, const absl::Status&, Outbox&) { Add(9); }});
  Check(1);
  EXPECT_TRUE(ended_.empty());
  tracker_.FailAll(kStart, absl::CancelledError("closed"), outbox_);
  EXPECT_THAT(ended_, ElementsAre(absl::CancelledError("closed")));
}

}  // namespace
}  // namespace covey::client
