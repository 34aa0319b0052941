// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/event_counts.h"

#include <set>

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

TEST(EventCountsTest, EachHasANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (size_t event = 0; event < kCountedEvents; ++event) {
    names.insert(CountedEventName(static_cast<CountedEvent>(event)));
  }
  EXPECT_EQ(names.size(), kCountedEvents);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(EventCountsTest, CountsEventsAndShards) {
  EventCounts counts;
  counts.Add(NodeDied{});
  counts.Add(NodeDied{});
  counts.Add(FirstGroupsFormed{.groups = 3});
  counts.Add(GroupsPlanned{.groups = 2});
  counts.Add(BarrierReleased{});
  counts.Add(ShardsReconciled{
      .shards = {{{.kind = ShardChange::Kind::kReinitializedLost, .node = "server-0"}, 4},
                 {{.kind = ShardChange::Kind::kReinitializedCorrupt, .node = "server-0"}, 1},
                 {{.kind = ShardChange::Kind::kPromoted, .node = "server-1"}, 2},
                 {{.kind = ShardChange::Kind::kFull, .node = "server-1"}, 8}}});
  EXPECT_EQ(counts.Of(CountedEvent::kNodeDied), 2u);
  EXPECT_EQ(counts.Of(CountedEvent::kGroupFormed), 3u);
  EXPECT_EQ(counts.Of(CountedEvent::kGroupsPlanned), 1u);
  EXPECT_EQ(counts.Of(CountedEvent::kShardReinitialized), 5u);
  EXPECT_EQ(counts.Of(CountedEvent::kHeadReplaced), 2u);
  EXPECT_EQ(counts.Of(CountedEvent::kNodeLeft), 0u);
}

}  // namespace
}  // namespace covey::scheduler
