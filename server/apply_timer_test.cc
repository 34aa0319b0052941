// SPDX-License-Identifier: Apache-2.0
#include "server/apply_timer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;

class NotingActor : public Actor {
 public:
  void Receive(absl::Time, const Message&, Outbox&) override { ++received; }
  void Wake(absl::Time, Outbox&) override { ++woken; }
  absl::Time NextWake() const override { return absl::UnixEpoch() + absl::Seconds(7); }

  int received = 0;
  int woken = 0;
};

TEST(ApplyTimerTest, TimesPushesAndRecordsAndPassesEverythingOn) {
  NotingActor actor;
  ApplyTimer timer(actor);
  Message push, record, pull;
  push.envelope.mutable_push_request();
  record.envelope.mutable_replicate_request();
  pull.envelope.mutable_pull_request();
  Outbox outbox;
  const absl::Time now = MonotonicNow();
  timer.Receive(now - absl::Milliseconds(5), push, outbox);
  timer.Receive(now - absl::Hours(1), record, outbox);
  timer.Receive(now, pull, outbox);
  timer.Wake(now, outbox);
  EXPECT_EQ(actor.received, 3);
  EXPECT_EQ(actor.woken, 1);
  EXPECT_EQ(timer.NextWake(), actor.NextWake());
  uint64_t all = 0;
  for (const uint64_t count : timer.times().counts()) all += count;
  EXPECT_EQ(all, 2u);
  EXPECT_EQ(timer.times().counts().back(), 1u);
  EXPECT_GE(timer.times().sum(), absl::Hours(1) + absl::Milliseconds(5));
}

}  // namespace
}  // namespace covey::server
