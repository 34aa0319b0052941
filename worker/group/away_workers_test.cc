// SPDX-License-Identifier: Apache-2.0
#include "worker/group/away_workers.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kPatience = absl::Seconds(20);

AwayWorker Away(uint64_t node, absl::Duration until) {
  return {.node = NodeId(node), .reason = "evaluation", .until = kStart + until};
}

TEST(AwayWorkersTest, DeadlinesHoldWhileNobodyIsAway) {
  AwayWorkers away(kPatience);
  EXPECT_EQ(away.DeadlineFloor(), absl::InfinitePast());
  away.Set(kStart, {});
  EXPECT_EQ(away.DeadlineFloor({NodeId(1)}), absl::InfinitePast());
  EXPECT_EQ(away.ReasonOf(NodeId(1)), nullptr);
}

TEST(AwayWorkersTest, WaitsLastUntilTheLastOneHadItsTime) {
  AwayWorkers away(kPatience);
  away.Set(kStart, {Away(1, absl::Seconds(60)), Away(2, absl::Seconds(300))});
  EXPECT_EQ(away.DeadlineFloor(), kStart + absl::Seconds(320));
  EXPECT_EQ(away.DeadlineFloor({NodeId(1), NodeId(3)}), kStart + absl::Seconds(80));
  EXPECT_EQ(away.DeadlineFloor({NodeId(3)}), absl::InfinitePast());
  ASSERT_NE(away.ReasonOf(NodeId(2)), nullptr);
  EXPECT_EQ(*away.ReasonOf(NodeId(2)), "evaluation");
}

TEST(AwayWorkersTest, AWorkerThatIsBackEarlyHasItsTimeFromThenOn) {
  AwayWorkers away(kPatience);
  away.Set(kStart, {Away(1, absl::Seconds(60))});
  away.Set(kStart + absl::Seconds(10), {});
  EXPECT_EQ(away.DeadlineFloor({NodeId(1)}), kStart + absl::Seconds(30));
  away.Set(kStart + absl::Seconds(11), {});
  EXPECT_EQ(away.DeadlineFloor({NodeId(1)}), kStart + absl::Seconds(30));
  EXPECT_NE(away.ReasonOf(NodeId(1)), nullptr) << "an error may name it yet";
  away.Set(kStart + absl::Seconds(51), {});
  EXPECT_EQ(away.ReasonOf(NodeId(1)), nullptr);
}

TEST(AwayWorkersTest, ALateAnnouncementDoesNotCountLonger) {
  AwayWorkers away(kPatience);
  away.Set(kStart, {Away(1, absl::Seconds(60))});
  // Its time is over, and nothing was heard meanwhile.
  away.Set(kStart + absl::Seconds(70), {});
  EXPECT_EQ(away.DeadlineFloor({NodeId(1)}), kStart + absl::Seconds(80));
}

TEST(AwayWorkersTest, ItMayAnnounceMoreTime) {
  AwayWorkers away(kPatience);
  away.Set(kStart, {Away(1, absl::Seconds(60))});
  away.Set(kStart + absl::Seconds(50), {Away(1, absl::Seconds(110))});
  EXPECT_EQ(away.DeadlineFloor({NodeId(1)}), kStart + absl::Seconds(130));
}

}  // namespace
}  // namespace covey::worker
