// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/limits.h"
#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/home_return.h"
#include "common/grouping/stragglers/slowest_removal.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

// Group 1 waits for its member node 4. Group 2 is as slow as node 4, and group 3 as fast as the
// others; node 5 or 1 stands for all of their members.
class FullGroupTest : public ::testing::Test {
 protected:
  FullGroupTest() {
    for (uint64_t node = 1; node <= 5; ++node) {
      waiting_.members.push_back({.node = NodeId(node), .home = GroupId(3)});
      for (int report = 0; report < 10; ++report) {
        judge_.Add(NodeId(node), {.compute_seconds = node < 4 ? 0.1 : 1, .samples_per_step = 100});
      }
    }
    waiting_.members.pop_back();
  }
  static GroupInForce Of(GroupId id, NodeId node, size_t members) {
    return {.id = id, .members = std::vector<GroupMember>(members, {.node = node})};
  }
  // What becomes of node 4 when there is a group for it of so many members.
  StragglerAction::Kind Remove(size_t members) {
    const std::vector<GroupInForce> groups = {waiting_, Of(GroupId(2), NodeId(5), members)};
    const GroupEfficiency efficiency = EfficiencyOf(judge_.KnownPaces(waiting_));
    return RemoveSlowest(waiting_, efficiency, groups, judge_, options_)->kind;
  }
  // Whether node 1 goes back to its home of so many members.
  bool Returns(size_t members) {
    const std::vector<GroupInForce> groups = {waiting_, Of(GroupId(3), NodeId(1), members)};
    HomeReturn home(options_);
    for (size_t report = 0; report < options_.recovered_reports; ++report) {
      if (home.Consider(waiting_, waiting_.members[0], groups, judge_)) return true;
    }
    return false;
  }

  StragglerOptions options_{.highest = StragglerRung::kEvict};
  StragglerJudge judge_{options_};
  GroupInForce waiting_{.id = GroupId(1), .members = {}};
};

TEST_F(FullGroupTest, AStragglerIsNotMovedIntoIt) {
  EXPECT_EQ(Remove(kGroupMembersMax - 1), StragglerAction::Kind::kRegroup);
  EXPECT_EQ(Remove(kGroupMembersMax), StragglerAction::Kind::kEvict);
}

TEST_F(FullGroupTest, AMemberThatHasRecoveredStaysWhereItIs) {
  EXPECT_TRUE(Returns(kGroupMembersMax - 1));
  EXPECT_FALSE(Returns(kGroupMembersMax));
}

}  // namespace
}  // namespace covey
