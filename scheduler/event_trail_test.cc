// SPDX-License-Identifier: Apache-2.0
#include "scheduler/event_trail.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

TEST(EventTrailTest, KeepsTheNewestInOrder) {
  EventTrail trail(2);
  trail.Add(absl::Seconds(1), {.text = "a", .kinds = {"node"}});
  trail.Add(absl::Seconds(2), {.text = "b", .kinds = {"node", "shards"}});
  trail.Add(absl::Seconds(3), {.text = "c", .kinds = {"job"}});

  proto::StatusReply all;
  trail.CopyAfter(0, all);
  ASSERT_EQ(all.events_size(), 2);
  EXPECT_EQ(all.events(0).text(), "b");
  EXPECT_EQ(all.events(0).sequence(), 2);
  ASSERT_EQ(all.events(0).kinds_size(), 2);
  EXPECT_EQ(all.events(0).kinds(0), "node");
  EXPECT_EQ(all.events(0).kinds(1), "shards");
  EXPECT_EQ(all.events(0).at_ms(), 2000);
  EXPECT_EQ(all.events(1).text(), "c");

  proto::StatusReply newer;
  trail.CopyAfter(2, newer);
  ASSERT_EQ(newer.events_size(), 1);
  EXPECT_EQ(newer.events(0).text(), "c");
}

}  // namespace
}  // namespace covey::scheduler
