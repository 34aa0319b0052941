// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/group_planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  // Three workers on each of two hosts, in pairs: exactly one pair must cross.
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

constexpr GroupPlanOptions::Sizes kEqual = GroupPlanOptions::Sizes::kEqual;
constexpr GroupPlanOptions::Sizes kFree = GroupPlanOptions::Sizes::kFree;

// Racks with a narrow uplink, so that crossing one costs.
ThroughputParameters SlowUplinks() {
  ThroughputParameters model;
  model.gradient_bytes = model.pushed_bytes = 20e6;
  model.costs.at(Level::kRack).uplink_bytes_per_second = 0.3e9;
  return model;
}

// A small cluster of any shape: racks, hosts, speeds with stragglers, failures, model.
struct Instance {
  std::vector<PlannedWorker> workers;
  ThroughputParameters model;
};
Instance RandomInstance(Random& random, size_t workers_max) {
  Instance instance{.workers = {}, .model = SlowUplinks()};
  const size_t count = 2 + random.Below(workers_max - 1);
  const size_t racks = 1 + random.Below(3), hosts = 1 + random.Below(4);
  const double spread = random.Chance(0.3) ? 0 : random.Uniform();
  for (size_t i = 0; i < count; ++i) {
    instance.workers.push_back(
        {.node = NodeId(i + 10),
         .rank = static_cast<uint32_t>(i),
         .labels = absl::StrCat("z/r", random.Below(racks), "/h", random.Below(hosts)),
         .speed = 300 * (1 - 0.5 * spread * random.Uniform())});
    if (random.Chance(0.1)) instance.workers.back().speed /= 2 + 3 * random.Uniform();
    if (random.Chance(0.2)) instance.workers.back().failures_per_hour = 5 * random.Uniform();
  }
  instance.model.noise_sigma = 0.3 * random.Uniform();
  instance.model.hiccup_chance = random.Chance(0.5) ? 0.02 * random.Uniform() : 0;
  instance.model.statistical_penalty = 0.3 * random.Uniform();
  instance.model.gradient_bytes = std::pow(10, 4 + 4 * random.Uniform());
  instance.model.pushed_bytes = instance.model.gradient_bytes * random.Uniform();
  if (random.Chance(0.3)) instance.model.fits = {{1, 0.5}, {2, 0.5 + random.Uniform()}};
  if (random.Chance(0.5)) instance.model.server_seconds_per_group = 0.01 * random.Uniform();
  return instance;
}

// The best value among all partitions into groups whose sizes are in [size_min, size_max], for each
// number of groups; over subsets, as bit masks.
std::vector<double> BruteForce(const Instance& instance, size_t groups_max, size_t size_min,
                               size_t size_max) {
  const ThroughputModel throughput(instance.workers, instance.model);
  const uint32_t everybody = (uint32_t{1} << throughput.size()) - 1;
  std::vector<ThroughputModel::Terms> terms(everybody + 1);
  for (uint32_t mask = 1; mask <= everybody; ++mask) {
    std::vector<uint32_t> members;
    for (uint32_t i = 0; i < throughput.size(); ++i) {
      if (mask >> i & 1) members.push_back(i);
    }
    terms[mask] = throughput.Rate(members);
  }
  std::vector<double> values(groups_max + 1, 0);
  for (size_t groups = 1; groups <= groups_max; ++groups) {
    std::vector<double> rates(everybody + 1, 0);
    for (uint32_t mask = 1; mask <= everybody; ++mask) {
      const size_t size = static_cast<size_t>(std::popcount(mask));
      const bool fits = size >= size_min && size <= size_max;
      rates[mask] = fits ? throughput.SamplesPerSecond(terms[mask], groups) : -1e18;
    }
    std::vector<double> best(everybody + 1, -1e18);
    best[0] = 0;
    for (size_t left = groups; left > 0; --left) {
      std::vector<double> next(everybody + 1, -1e18);
      for (uint32_t mask = 1; mask <= everybody; ++mask) {
        // The group with the lowest member that is in the mask.
        const uint32_t lowest = mask & ~(mask - 1);
        for (uint32_t group = mask; group > 0; group = (group - 1) & mask) {
          if (group & lowest) next[mask] = std::max(next[mask], rates[group] + best[mask ^ group]);
        }
      }
      best = std::move(next);
    }
    values[groups] =
        best[everybody] * throughput.StatisticalFactor(groups) * throughput.Fit(groups);
  }
  return values;
}

TEST(GroupPlannerTest, ComesCloseToTheBestOfAllPartitions) {
  Random random(11);
  double worst = 1, sum = 0;
  constexpr int kInstances = 200;
  for (int round = 0; round < kInstances; ++round) {
    const Instance instance = RandomInstance(random, round % 20 == 0 ? 12 : 9);
    const size_t count = instance.workers.size();
    const std::vector<double> values = BruteForce(instance, count, 1, count);
    const double best = *std::max_element(values.begin(), values.end());
    const GroupPlan plan = PlanGroups(instance.workers, {.model = instance.model});
    const double ratio = plan.value() / best;
    EXPECT_GE(ratio, 0.98) << "instance " << round << ": " << plan.Explain();
    EXPECT_LE(ratio, 1 + 1e-9);
    worst = std::min(worst, ratio);
    sum += ratio;
  }
  RecordProperty("worst", absl::StrCat(worst));
  RecordProperty("mean", absl::StrCat(sum / kInstances));
}

TEST(GroupPlannerTest, ComesCloseToTheBestForAGivenNumberOfGroups) {
  Random random(12);
  for (int round = 0; round < 200; ++round) {
    const Instance instance = RandomInstance(random, 9);
    const size_t count = instance.workers.size();
    const size_t groups = 1 + random.Below(std::min<size_t>(count, 5));
    const double free = BruteForce(instance, groups, 1, count)[groups];
    const double equal =
        BruteForce(instance, groups, count / groups, (count + groups - 1) / groups)[groups];
    const auto value = [&](GroupPlanOptions::Sizes sizes) {
      const GroupPlan plan =
          PlanGroups(instance.workers, {.groups = groups, .sizes = sizes, .model = instance.model});
      EXPECT_EQ(plan.groups.size(), groups);
      return plan.value();
    };
    EXPECT_GE(value(kFree) / free, 0.98) << "instance " << round;
    EXPECT_GE(value(kEqual) / equal, 0.98) << "instance " << round;
  }
}

TEST(GroupPlannerTest, DoesNotDependOnTheOrderOfInput) {
  Random random(13);
  for (int round = 0; round < 30; ++round) {
    Instance instance = RandomInstance(random, 40);
    const Plan plan = PlanGroups(instance.workers, {.model = instance.model}).Members();
    for (size_t i = instance.workers.size(); i > 1; --i) {
      std::swap(instance.workers[i - 1], instance.workers[random.Below(i)]);
    }
    EXPECT_EQ(PlanGroups(instance.workers, {.model = instance.model}).Members(), plan);
  }
}

std::vector<PlannedWorker> WithSpeeds(const std::vector<std::string>& labels,
                                      const std::vector<double>& speeds) {
  std::vector<PlannedWorker> workers = Workers(labels);
  for (size_t i = 0; i < workers.size(); ++i) workers[i].speed = speeds[i];
  return workers;
}

TEST(GroupPlannerTest, PutsEqualSpeedsTogether) {
  const auto workers = WithSpeeds({"z/r", "z/r", "z/r", "z/r"}, {100, 20, 100, 20});
  EXPECT_EQ(PlanGroups(workers, 2), (Plan{Ids({10, 12}), Ids({11, 13})}));
}

TEST(GroupPlannerTest, LeavesTheSlowAlone) {
  const auto workers =
      WithSpeeds(std::vector<std::string>(8, "z/r"), {100, 100, 10, 100, 100, 100, 100, 100});
  const Plan plan =
      PlanGroups(workers, {.groups = 2, .sizes = kFree, .model = SlowUplinks()}).Members();
  EXPECT_EQ(plan, (Plan{Ids({10, 11, 13, 14, 15, 16, 17}), Ids({12})}));
}

TEST(GroupPlannerTest, KeepsTheUnreliableTogether) {
  auto workers = Workers(std::vector<std::string>(6, "z/r"));
  for (size_t i : {0, 3, 5}) workers[i].failures_per_hour = 20;
  const Plan plan =
      PlanGroups(workers, {.groups = 2, .sizes = kEqual, .model = SlowUplinks()}).Members();
  EXPECT_EQ(plan, (Plan{Ids({10, 13, 15}), Ids({11, 12, 14})}));
}

TEST(GroupPlannerTest, ChoosesOneGroupPerRackWhenUplinksAreNarrow) {
  std::vector<std::string> labels;
  for (int i = 0; i < 24; ++i) labels.push_back(absl::StrCat("z/r", i % 3, "/h", i));
  ThroughputParameters model = SlowUplinks();
  model.gradient_bytes = 200e6;
  model.server_seconds_per_group = 0.02;
  const GroupPlan plan = PlanGroups(Workers(labels), {.model = model});
  ASSERT_EQ(plan.groups.size(), 3u) << plan.Explain();
  for (const PlannedGroup& group : plan.groups) EXPECT_EQ(group.members.size(), 8u);
  // Where links are wide and groups cost much, one group is best.
  model.costs = LinkCosts();
  model.gradient_bytes = 1e6;
  model.statistical_penalty = 0.5;
  EXPECT_EQ(PlanGroups(Workers(labels), {.model = model}).groups.size(), 1u);
}

TEST(GroupPlannerTest, MergesLeftOversIntoTheNearestRack) {
  // Seven and one: the worker that is alone in its rack joins the others of its zone.
  const auto workers = Workers({"z/r", "z/r", "y/q", "y/q", "y/s", "z/r"});
  const Plan plan =
      PlanGroups(workers, {.groups = 2, .sizes = kEqual, .model = SlowUplinks()}).Members();
  EXPECT_EQ(plan, (Plan{Ids({10, 11, 15}), Ids({12, 13, 14})}));
}

TEST(GroupPlannerTest, KeepsToTheLargestSize) {
  const auto workers = Workers(std::vector<std::string>(20, "z/r"));
  ThroughputParameters model;
  model.statistical_penalty = 1;
  const GroupPlan plan = PlanGroups(workers, {.members_max = 6, .model = model});
  EXPECT_EQ(plan.groups.size(), 4u);
  for (const PlannedGroup& group : plan.groups) EXPECT_LE(group.members.size(), 6u);
}

// 9,600 nodes as on Cori: 50 racks of 192, some slow. Takes half a second of a processor.
TEST(GroupPlannerTest, PlansTenThousandNodes) {
  Random random(14);
  std::vector<PlannedWorker> workers;
  for (uint32_t i = 0; i < 9600; ++i) {
    workers.push_back({.node = NodeId(i + 10),
                       .rank = i,
                       .labels = absl::StrCat("z/r", i % 50, "/h", i),
                       .speed = 100 * (1 - 0.1 * random.Uniform())});
    if (random.Chance(0.01)) workers.back().speed = 25;
  }
  ThroughputParameters model = SlowUplinks();
  model.noise_sigma = 0.08;
  const GroupPlan plan = PlanGroups(workers, {.model = model});
  std::set<NodeId> seen;
  for (const PlannedGroup& group : plan.groups) {
    seen.insert(group.members.begin(), group.members.end());
    EXPECT_LE(group.members.size(), kGroupMembersMax);
  }
  EXPECT_EQ(seen.size(), workers.size());
  const double one_per_rack =
      EvaluateGroups(workers, PlanGroups(workers, size_t{50}), model).value();
  EXPECT_GT(plan.value(), 1.1 * one_per_rack) << plan.Explain();
}

TEST(GroupPlannerTest, EvaluatesPresentGroupsByTheSameMeasure) {
  const auto workers = WithSpeeds({"z/r", "z/r", "z/s", "z/s"}, {100, 100, 50, 50});
  const GroupPlan plan = PlanGroups(workers, {.groups = 2, .model = SlowUplinks()});
  const GroupPlan again = EvaluateGroups(workers, plan.Members(), SlowUplinks());
  EXPECT_EQ(again.value(), plan.value());
  EXPECT_EQ(again.Members(), plan.Members());
  EXPECT_THAT(plan.Explain(), HasSubstr("2 groups, "));
  EXPECT_THAT(plan.Explain(), HasSubstr("communication"));
  const GroupPlan crossed =
      EvaluateGroups(workers, {Ids({10, 12}), Ids({11, 13}), Ids({99})}, SlowUplinks());
  EXPECT_EQ(crossed.groups.size(), 2u);
  EXPECT_LT(crossed.value(), 0.9 * plan.value());
}

TEST(GroupPlannerTest, GroupsInStepAreAsFastAsTheSlowest) {
  const auto workers = WithSpeeds({"z/r", "z/r", "z/r", "z/r"}, {100, 100, 20, 20});
  ThroughputParameters model{.samples_per_step = 10, .noise_sigma = 0, .statistical_penalty = 0};
  const Plan by_speed = {Ids({10, 11}), Ids({12, 13})};
  EXPECT_NEAR(EvaluateGroups(workers, by_speed, model).samples_per_second, 240, 0.5);
  model.groups_in_step = true;
  const GroupPlan plan = EvaluateGroups(workers, by_speed, model);
  EXPECT_NEAR(plan.samples_per_second, 80, 0.1);
  EXPECT_NEAR(plan.groups[0].samples_per_second, 40, 0.1);
  EXPECT_NEAR(plan.groups[0].step_seconds, 0.1, 0.001);
  EXPECT_EQ(Replan(workers, {Ids({10, 11, 12, 13})}, {.model = model}).replan, false);
}

TEST(GroupPlannerTest, WorkersAreAddedWhereTheyBringMost) {
  const auto workers = WithSpeeds({"z/r", "z/r", "z/s", "z/s", "z/s"}, {100, 100, 50, 50, 50});
  const GroupPlanOptions options{.model = SlowUplinks()};
  EXPECT_EQ(PlaceWorkers(workers, {Ids({10, 11}), Ids({12, 13, 99})}, options),
            (Plan{Ids({10, 11}), Ids({12, 13, 14})}));
  EXPECT_EQ(PlaceWorkers(workers, {}, options), (Plan{Ids({10, 11, 12, 13, 14})}));
}

TEST(GroupPlannerTest, ReplansOnlyForAGain) {
  const GroupPlanOptions options{.groups = 2, .model = SlowUplinks()};
  const std::vector<std::string> racks = {"z/r", "z/r", "z/s", "z/s"};
  const Plan present = {Ids({10, 11}), Ids({12, 13})};
  const ReplanDecision none = Replan(WithSpeeds(racks, {100, 98, 100, 99}), present, options);
  EXPECT_FALSE(none.replan);
  EXPECT_EQ(none.plan.Members(), present);
  EXPECT_THAT(none.reason, HasSubstr("stay"));

  // One member of each pair slows down to a third; swapping them within a rack is worth it.
  const std::vector<std::string> one_rack(4, "z/r");
  const ReplanDecision slow = Replan(WithSpeeds(one_rack, {100, 33, 100, 33}), present, options);
  EXPECT_TRUE(slow.replan);
  EXPECT_EQ(slow.plan.Members(), (Plan{Ids({10, 12}), Ids({11, 13})}));
  EXPECT_GT(slow.gain, 0.05);
  EXPECT_THAT(slow.reason, HasSubstr("more progress"));
  EXPECT_FALSE(Replan(WithSpeeds(one_rack, {100, 33, 100, 33}), present, options, 10).replan);
}

TEST(GroupPlannerTest, ADepartureMovesNobodyElse) {
  GroupPlanOptions options{.groups = 3, .model = SlowUplinks()};
  std::vector<std::string> labels;
  for (int i = 0; i < 12; ++i) labels.push_back(absl::StrCat("z/r", i / 4));
  std::vector<PlannedWorker> workers = Workers(labels);
  const Plan present = PlanGroups(workers, options).Members();
  workers.erase(workers.begin() + 5);
  const ReplanDecision gone = Replan(workers, present, options);
  EXPECT_TRUE(gone.replan);
  EXPECT_EQ(gone.plan.Members(),
            (Plan{Ids({10, 11, 12, 13}), Ids({14, 16, 17}), Ids({18, 19, 20, 21})}));
  EXPECT_THAT(gone.reason, HasSubstr("1 worker gone, 0 new"));

  // A new worker in the first rack goes there.
  workers.push_back({.node = NodeId(50), .rank = 50, .labels = "z/r0"});
  const ReplanDecision joined = Replan(workers, gone.plan.Members(), options);
  EXPECT_TRUE(joined.replan);
  EXPECT_THAT(joined.plan.groups[0].members,
              ElementsAre(NodeId(10), NodeId(11), NodeId(12), NodeId(13), NodeId(50)));
}

TEST(GroupPlannerTest, ReplansWhenAGroupIsLost) {
  std::vector<PlannedWorker> workers = Workers({"z/r", "z/r", "z/r", "z/r"});
  const ReplanDecision decision =
      Replan(workers, {Ids({10, 11, 12, 13}), Ids({14, 15})}, {.groups = 2, .model = {}});
  EXPECT_TRUE(decision.replan);
  EXPECT_EQ(decision.plan.groups.size(), 2u);
  EXPECT_THAT(decision.reason, HasSubstr("wanted: 2 groups, left: 1"));
}

TEST(GroupPlannerTest, ReplansFromNothing) {
  const ReplanDecision decision = Replan(Workers({"z/r", "z/r"}), {}, {.model = SlowUplinks()});
  EXPECT_TRUE(decision.replan);
  EXPECT_FALSE(decision.plan.groups.empty());
}

}  // namespace
}  // namespace covey
