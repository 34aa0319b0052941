#include "common/cluster/group_planner.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using Plan = std::vector<std::vector<NodeId>>;

// Node ids are ranks + 10.
std::vector<PlannedWorker> Workers(const std::vector<std::string>& labels) {
  std::vector<PlannedWorker> workers;
  for (size_t i = 0; i < labels.size(); ++i) {
    workers.push_back(
        {.node = NodeId(i + 10), .rank = static_cast<uint32_t>(i), .labels = labels[i]});
  }
  return workers;
}

std::vector<NodeId> Ids(std::vector<uint64_t> values) {
  std::vector<NodeId> ids;
  for (uint64_t value : values) ids.push_back(NodeId(value));
  return ids;
}

TEST(GroupPlannerTest, WithoutLabelsByRank) {
  EXPECT_EQ(PlanGroups(Workers({"", "", "", ""}), 2), (Plan{Ids({10, 11}), Ids({12, 13})}));
}

TEST(GroupPlannerTest, KeepsRacksTogether) {
  const auto workers = Workers({"z/r1", "z/r2", "z/r1", "z/r2"});
  EXPECT_EQ(PlanGroups(workers, 2), (Plan{Ids({10, 12}), Ids({11, 13})}));
}

TEST(GroupPlannerTest, FillsGroupsInsideAHostBeforeCrossingIt) {
  // Three workers on each of two hosts, pairs wanted: one pair must cross, and only one.
  const auto workers = Workers({"z/r/a", "z/r/a", "z/r/a", "z/r/b", "z/r/b", "z/r/b"});
  EXPECT_EQ(PlanGroups(workers, 3), (Plan{Ids({10, 11}), Ids({12, 15}), Ids({13, 14})}));
}

TEST(GroupPlannerTest, SizesDifferByAtMostOne) {
  EXPECT_EQ(PlanGroups(Workers({"", "", "", "", ""}), 2), (Plan{Ids({10, 11, 12}), Ids({13, 14})}));
  EXPECT_EQ(PlanGroups(Workers({"", ""}), 5), (Plan{Ids({10}), Ids({11})}));
  EXPECT_TRUE(PlanGroups({}, 3).empty());
}

TEST(GroupPlannerTest, RandomClustersAreCutCompletelyAndWithoutRegardToInputOrder) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> labels;
    const size_t count = 1 + random.Below(40);
    for (size_t i = 0; i < count; ++i) {
      labels.push_back(absl::StrCat("z", random.Below(2), "/r", random.Below(3), "/h",
                                    random.Below(3), "/", random.Below(4)));
    }
    const size_t groups = 1 + random.Below(count);
    std::vector<PlannedWorker> workers = Workers(labels);
    const Plan plan = PlanGroups(workers, groups);
    ASSERT_EQ(plan.size(), groups);
    std::set<NodeId> seen;
    for (const auto& group : plan) {
      EXPECT_GE(group.size(), count / groups);
      EXPECT_LE(group.size(), (count + groups - 1) / groups);
      seen.insert(group.begin(), group.end());
    }
    EXPECT_EQ(seen.size(), count);
    std::reverse(workers.begin(), workers.end());
    EXPECT_EQ(PlanGroups(workers, groups), plan);
  }
}

}  // namespace
}  // namespace covey
