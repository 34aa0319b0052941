// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/straggler_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/straggler_rung.h"

namespace covey {

void PrintTo(const StragglerAction& action, std::ostream* out) {
  *out << "action " << static_cast<int>(action.kind) << ": " << action.evidence;
}

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Action = StragglerAction;
using Kind = Action::Kind;

constexpr double kPi = 3.14159265358979323846;

// Workers that compute in virtual time and follow the decisions of a ladder.
class Cluster {
 public:
  struct Worker {
    double seconds_per_sample = 0.001;
    double fixed_seconds = 0;
    double noise = 0;         // sigma of a lognormal factor per report
    double hiccup = 0;        // chance per report
    double hiccup_times = 5;  // slower
    bool steps_aside = false;
  };

  explicit Cluster(StragglerOptions options, uint64_t seed = 1) : ladder_(options), random_(seed) {}

  // Nodes are numbered from 1 over all groups.
  void AddGroup(std::vector<Worker> workers) {
    GroupInForce& group = groups_.emplace_back();
    group.id = GroupId(static_cast<uint32_t>(groups_.size()));
    group.generation = 1;
    for (const Worker& worker : workers) {
      workers_.push_back(worker);
      const NodeId node(workers_.size());
      group.members.push_back({.node = node, .name = absl::StrCat("worker-", node.value())});
    }
  }
  Worker& worker(uint64_t node) { return workers_[node - 1]; }
  GroupInForce& group(size_t index) { return groups_[index]; }
  StragglerLadder& ladder() { return ladder_; }
  const std::vector<GroupMember>& evicted() const { return evicted_; }

  // Makes `reports` reports of each worker. Returns the ladder's actions.
  std::vector<Action> Run(int reports) {
    std::vector<Action> actions;
    for (int i = 0; i < reports; ++i) {
      now_ += absl::Seconds(1);
      const std::vector<GroupInForce> before = groups_;
      for (const GroupInForce& group : before) {
        for (size_t rank = 0; rank < group.members.size(); ++rank) {
          const NodeId node = group.members[rank].node;
          const auto now_in = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) {
            return std::any_of(g.members.begin(), g.members.end(),
                               [&](const auto& member) { return member.node == node; });
          });
          const auto action = ladder_.Report(node, Measure(group, rank),
                                             now_in == groups_.end() ? nullptr : &*now_in, groups_);
          if (!action) continue;
          Apply(*action);
          actions.push_back(*action);
        }
      }
      for (const Action& action : ladder_.EndProbation(now_, groups_, evicted_)) {
        Apply(action);
        actions.push_back(action);
      }
    }
    return actions;
  }

 private:
  static constexpr double kSamplesPerMember = 100;

  PaceReport Measure(const GroupInForce& group, size_t rank) {
    const Worker& worker = workers_[group.members[rank].node.value() - 1];
    double part = 1.0 / static_cast<double>(group.members.size());
    if (!group.shares.empty()) {
      part = group.shares[rank] / std::accumulate(group.shares.begin(), group.shares.end(), 0.0);
    }
    const double samples = kSamplesPerMember * static_cast<double>(group.members.size()) * part;
    const double normal =
        std::sqrt(-2 * std::log(1 - random_.Uniform())) * std::cos(2 * kPi * random_.Uniform());
    double seconds = (worker.fixed_seconds + samples * worker.seconds_per_sample) *
                     std::exp(worker.noise * normal);
    if (worker.hiccup > 0 && random_.Chance(worker.hiccup)) seconds *= worker.hiccup_times;
    return {.compute_seconds = seconds,
            .slowest_seconds = seconds,
            .samples_per_step = samples,
            .steps = ++steps_,
            .steps_aside = worker.steps_aside ? steps_ : 0};
  }

  void Apply(const Action& action) {
    for (GroupInForce& group : groups_) {
      if (group.id != action.group) continue;
      if (action.kind == Kind::kShiftSamples) group.shares = action.shares;
      if (action.kind == Kind::kPartialReduce) group.minimum_members = action.minimum_members;
    }
    if (action.kind != Kind::kRegroup && action.kind != Kind::kEvict) return;
    GroupMember moved;
    const auto take = [&](std::vector<GroupMember>& from) {
      const auto found = std::find_if(from.begin(), from.end(), [&](const auto& member) {
        return member.node == action.member;
      });
      if (found == from.end()) return false;
      moved = *found;
      from.erase(found);
      return true;
    };
    take(evicted_);
    for (GroupInForce& group : groups_) {
      if (!take(group.members)) continue;
      if (moved.home == GroupId()) moved.home = group.id;
      Change(group);
    }
    if (action.kind == Kind::kEvict) evicted_.push_back(moved);
    for (GroupInForce& group : groups_) {
      if (action.kind != Kind::kRegroup || group.id != action.to) continue;
      if (group.id == moved.home) moved.home = GroupId();
      group.members.push_back(moved);
      Change(group);
    }
  }
  static void Change(GroupInForce& group) {
    ++group.generation;
    group.shares.clear();
    group.minimum_members = 0;
  }

  StragglerLadder ladder_;
  Random random_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Worker> workers_;
  std::vector<GroupInForce> groups_;
  std::vector<GroupMember> evicted_;
  uint64_t steps_ = 0;
};

std::vector<Kind> Kinds(const std::vector<Action>& actions) {
  std::vector<Kind> kinds;
  for (const Action& action : actions) kinds.push_back(action.kind);
  return kinds;
}

std::vector<Cluster::Worker> Healthy(size_t count) { return std::vector<Cluster::Worker>(count); }

TEST(StragglerLadderTest, ASlowMemberGetsFewerSamplesAndThenAsManyAgain) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(4));
  EXPECT_THAT(cluster.Run(50), IsEmpty());
  cluster.worker(3).seconds_per_sample *= 2;
  const std::vector<Action> slow = cluster.Run(200);
  ASSERT_FALSE(slow.empty());
  EXPECT_LE(slow.size(), 4u) << "while the average settles, then never again";
  EXPECT_EQ(slow[0].kind, Kind::kShiftSamples);
  EXPECT_THAT(slow[0].evidence, HasSubstr("worker-3 takes"));
  EXPECT_THAT(slow[0].evidence, HasSubstr("its group's median"));
  const std::vector<uint32_t>& shares = cluster.group(0).shares;
  EXPECT_NEAR(static_cast<double>(shares[2]) / shares[0], 0.5, 0.04);
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(3))->state, StragglerJudge::State::kStraggler);
  EXPECT_NEAR(cluster.ladder().StandingOf(NodeId(3))->slowness, 2, 0.1);

  cluster.worker(3).seconds_per_sample /= 2;
  const std::vector<Action> recovered = cluster.Run(200);
  ASSERT_FALSE(recovered.empty());
  EXPECT_THAT(recovered.back().shares, IsEmpty());
  EXPECT_THAT(recovered.back().evidence, HasSubstr("of the median again"));
  EXPECT_THAT(cluster.group(0).shares, IsEmpty());
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(3))->state, StragglerJudge::State::kSteady);
}

TEST(StragglerLadderTest, SlowIsAboveOneAndAHalfTimesForFiveReports) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(3));
  cluster.worker(1).seconds_per_sample *= 1.45;
  EXPECT_THAT(cluster.Run(300), IsEmpty());
  cluster.worker(1).seconds_per_sample *= 1.6 / 1.45;
  EXPECT_THAT(Kinds(cluster.Run(300)), ::testing::Contains(Kind::kShiftSamples));
}

TEST(StragglerLadderTest, OtherOptionsHoldFromTheNextReportOn) {
  StragglerOptions options;
  options.slow_ratio = 3;
  Cluster cluster(options);
  cluster.AddGroup(Healthy(3));
  cluster.worker(1).seconds_per_sample *= 2;
  EXPECT_THAT(cluster.Run(200), IsEmpty());
  options.slow_ratio = 1.5;
  options.highest = StragglerRung::kObserve;
  cluster.ladder().SetOptions(options);
  EXPECT_THAT(Kinds(cluster.Run(100)), ElementsAre(Kind::kNotice));
  options.highest = StragglerRung::kShift;
  cluster.ladder().SetOptions(options);
  EXPECT_THAT(Kinds(cluster.Run(100)), ::testing::Contains(Kind::kShiftSamples));
}

TEST(StragglerLadderTest, AGroupIsLeftAloneForAWhileAfterEachDecision) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(4));
  cluster.Run(50);
  cluster.worker(3).seconds_per_sample *= 6;
  std::vector<int> times;
  for (int round = 0; round < 200; ++round) {
    if (!cluster.Run(1).empty()) times.push_back(round);
  }
  ASSERT_GE(times.size(), 2u) << "the average settles after the first decision";
  for (size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 10);
}

TEST(StragglerLadderTest, RecoveredIsFasterThanNotQuiteAStraggler) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(4));
  cluster.worker(3).seconds_per_sample *= 2;
  cluster.Run(100);
  cluster.worker(3).seconds_per_sample *= 1.35 / 2;
  for (const Action& action : cluster.Run(300)) EXPECT_FALSE(action.shares.empty());
  EXPECT_FALSE(cluster.group(0).shares.empty());
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(3))->state, StragglerJudge::State::kStraggler);
}

TEST(StragglerLadderTest, WithOtherMembersTheJudgementBeginsAnew) {
  Cluster cluster({.highest = StragglerRung::kObserve});
  cluster.AddGroup(Healthy(4));
  cluster.worker(3).seconds_per_sample *= 2;
  cluster.Run(100);
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(3))->state, StragglerJudge::State::kStraggler);
  ++cluster.group(0).generation;
  cluster.Run(1);
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(3))->state, StragglerJudge::State::kSteady);
}

TEST(StragglerLadderTest, OfAPairTheSlowerIsTheStraggler) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(2));
  cluster.worker(2).seconds_per_sample *= 1.8;
  cluster.Run(100);
  const std::vector<uint32_t>& shares = cluster.group(0).shares;
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(static_cast<double>(shares[0]) / shares[1], 1.8, 0.1);
}

TEST(StragglerLadderTest, MembersThatAreLateNowAndThenAreNotWaitedForUntilTheyAreSteady) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(4));
  cluster.worker(2).hiccup = 0.15;
  const std::vector<Action> late = cluster.Run(300);
  ASSERT_THAT(Kinds(late), ElementsAre(Kind::kPartialReduce));
  EXPECT_EQ(late[0].minimum_members, 3u);
  EXPECT_EQ(late[0].grace, absl::Milliseconds(50)) << "half a step of 100 ms";
  EXPECT_THAT(late[0].evidence, HasSubstr("worker-2 was late in"));
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(2))->state, StragglerJudge::State::kHiccups);

  cluster.worker(2).hiccup = 0;
  const std::vector<Action> steady = cluster.Run(300);
  ASSERT_THAT(Kinds(steady), ElementsAre(Kind::kPartialReduce));
  EXPECT_EQ(steady[0].minimum_members, 0u);
}

TEST(StragglerLadderTest, AMemberThatStepsAsideForAnotherReasonIsStillNotWaitedFor) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(4));
  cluster.group(0).minimum_members = 3;
  cluster.worker(2).steps_aside = true;
  EXPECT_THAT(cluster.Run(200), IsEmpty());
  cluster.worker(2).steps_aside = false;
  EXPECT_THAT(Kinds(cluster.Run(200)), ElementsAre(Kind::kPartialReduce));
}

TEST(StragglerLadderTest, AGroupWaitsForHalfOfItsMembersAtLeast) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(6));
  for (uint64_t node = 1; node <= 5; ++node) cluster.worker(node).hiccup = 0.2;
  cluster.Run(300);
  EXPECT_EQ(cluster.group(0).minimum_members, 3u);
}

TEST(StragglerLadderTest, TheOperatorMaySayHowManyAndHowLong) {
  Cluster cluster({.partial_minimum = 2, .partial_grace = absl::Milliseconds(7)});
  cluster.AddGroup(Healthy(4));
  cluster.worker(1).hiccup = 0.2;
  const std::vector<Action> actions = cluster.Run(300);
  ASSERT_THAT(Kinds(actions), ElementsAre(Kind::kPartialReduce));
  EXPECT_EQ(actions[0].minimum_members, 2u);
  EXPECT_EQ(actions[0].grace, absl::Milliseconds(7));
}

// A cost per step that no share removes.
TEST(StragglerLadderTest, AMemberThatSharesCannotHelpMovesToASlowerGroupAndBack) {
  Cluster cluster({.highest = StragglerRung::kRegroup});
  cluster.AddGroup(Healthy(4));
  cluster.AddGroup(std::vector<Cluster::Worker>(3, {.seconds_per_sample = 0.01}));
  EXPECT_THAT(cluster.Run(50), IsEmpty());
  cluster.worker(4).fixed_seconds = 0.8;
  const std::vector<Action> slow = cluster.Run(300);
  ASSERT_THAT(Kinds(slow), ::testing::Contains(Kind::kRegroup));
  EXPECT_EQ(slow[0].kind, Kind::kShiftSamples) << "the lowest rung first";
  EXPECT_EQ(cluster.group(0).members.size(), 3u);
  ASSERT_EQ(cluster.group(1).members.size(), 4u);
  const Action& move = *std::find_if(slow.begin(), slow.end(),
                                     [](const Action& a) { return a.kind == Kind::kRegroup; });
  EXPECT_EQ(move.member, NodeId(4));
  EXPECT_EQ(move.to, GroupId(2));
  EXPECT_THAT(move.evidence, HasSubstr("the group waits for worker-4"));
  EXPECT_THAT(move.evidence, HasSubstr("of the summed speed of its members"));

  cluster.worker(4).fixed_seconds = 0;
  const std::vector<Action> back = cluster.Run(300);
  ASSERT_THAT(Kinds(back), ::testing::Contains(Kind::kRegroup));
  EXPECT_EQ(cluster.group(0).members.size(), 4u);
  EXPECT_THAT(cluster.Run(300), IsEmpty()) << "all is as it was";
}

TEST(StragglerLadderTest, WithoutAGroupThatFitsItIsEvictedAndMayTryAgainLater) {
  Cluster cluster({.highest = StragglerRung::kEvict, .probation = absl::Minutes(1)});
  cluster.AddGroup(Healthy(4));
  cluster.AddGroup(Healthy(4));
  cluster.Run(50);
  cluster.worker(4).fixed_seconds = 2;
  const std::vector<Action> actions = cluster.Run(60);
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(actions.back().kind, Kind::kEvict);
  EXPECT_THAT(actions.back().evidence, HasSubstr("no other group is as slow"));
  ASSERT_EQ(cluster.evicted().size(), 1u);
  EXPECT_EQ(cluster.group(0).members.size(), 3u);

  // Still slow: evicted again, for twice as long.
  int in = 0;
  int evictions = 1;
  for (int i = 0; i < 600; ++i) {
    for (const Action& action : cluster.Run(1)) {
      if (action.kind == Kind::kRegroup) ++in;
      if (action.kind == Kind::kEvict) ++evictions;
    }
  }
  EXPECT_GE(in, 2);
  EXPECT_LE(evictions, 4) << "60 s, 120 s, 240 s";
  cluster.worker(4).fixed_seconds = 0;
  cluster.Run(1000);
  EXPECT_THAT(cluster.evicted(), IsEmpty());
  EXPECT_EQ(cluster.group(0).members.size(), 4u);
  EXPECT_THAT(cluster.Run(300), IsEmpty());
}

TEST(StragglerLadderTest, WithoutLeaveToMoveItTheGroupDoesNotWaitForIt) {
  Cluster cluster({.highest = StragglerRung::kPartial});
  cluster.AddGroup(Healthy(4));
  cluster.Run(50);
  cluster.worker(4).fixed_seconds = 2;
  cluster.Run(200);
  EXPECT_EQ(cluster.group(0).minimum_members, 3u);
  EXPECT_EQ(cluster.group(0).members.size(), 4u);
  cluster.worker(4).fixed_seconds = 0;
  cluster.Run(300);
  EXPECT_EQ(cluster.group(0).minimum_members, 0u);
  EXPECT_THAT(cluster.group(0).shares, IsEmpty());
}

TEST(StragglerLadderTest, AGroupNeverGetsSmallerThanAllowed) {
  Cluster cluster({.highest = StragglerRung::kEvict});
  cluster.AddGroup(Healthy(2));
  cluster.worker(2).fixed_seconds = 5;
  cluster.Run(300);
  EXPECT_EQ(cluster.group(0).members.size(), 2u);
  EXPECT_EQ(cluster.group(0).minimum_members, 1u);
}

TEST(StragglerLadderTest, ObservingOnlySaysWhatItSees) {
  Cluster cluster({.highest = StragglerRung::kObserve});
  cluster.AddGroup(Healthy(3));
  cluster.Run(50);
  cluster.worker(1).seconds_per_sample *= 4;
  const std::vector<Action> slow = cluster.Run(100);
  ASSERT_THAT(Kinds(slow), ElementsAre(Kind::kNotice));
  EXPECT_THAT(slow[0].evidence, HasSubstr("worker-1 takes"));
  cluster.worker(1).seconds_per_sample /= 4;
  const std::vector<Action> recovered = cluster.Run(200);
  ASSERT_THAT(Kinds(recovered), ElementsAre(Kind::kNotice));
  EXPECT_THAT(recovered[0].evidence, HasSubstr("steady again"));
}

TEST(StragglerLadderTest, OffDoesNothing) {
  Cluster cluster({.highest = StragglerRung::kOff});
  cluster.AddGroup(Healthy(3));
  cluster.worker(1).seconds_per_sample *= 4;
  EXPECT_THAT(cluster.Run(100), IsEmpty());
  EXPECT_FALSE(cluster.ladder().StandingOf(NodeId(1)).has_value());
}

TEST(StragglerLadderTest, WhatIsInForceIsTakenFromTheView) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(3));
  cluster.group(0).shares = {1000, 1000, 500};
  cluster.group(0).minimum_members = 2;
  cluster.Run(200);
  EXPECT_THAT(cluster.group(0).shares, IsEmpty());
  EXPECT_EQ(cluster.group(0).minimum_members, 0u);
}

TEST(StragglerLadderTest, TheForgottenMayComeBackAsOthers) {
  Cluster cluster({});
  cluster.AddGroup(Healthy(3));
  cluster.Run(20);
  cluster.ladder().Forget(NodeId(2));
  EXPECT_FALSE(cluster.ladder().StandingOf(NodeId(2)).has_value());
  cluster.Run(1);
  EXPECT_EQ(cluster.ladder().StandingOf(NodeId(2))->state, StragglerJudge::State::kLearning);
}

class NoiseTest : public ::testing::TestWithParam<size_t> {};

TEST_P(NoiseTest, HealthyNoiseIsLeftAlone) {
  Cluster cluster({.highest = StragglerRung::kEvict}, GetParam());
  for (int group = 0; group < 3; ++group) {
    cluster.AddGroup(std::vector<Cluster::Worker>(GetParam(), {.noise = 0.3}));
  }
  for (const Action& action : cluster.Run(4000)) ADD_FAILURE() << action.evidence;
}

TEST_P(NoiseTest, NoisyStragglersDoNotFlap) {
  Cluster cluster({.highest = StragglerRung::kEvict}, GetParam());
  cluster.AddGroup(std::vector<Cluster::Worker>(GetParam(), {.noise = 0.2}));
  cluster.worker(1).seconds_per_sample *= 2.5;
  const std::vector<Action> actions = cluster.Run(3000);
  EXPECT_GE(actions.size(), 1u);
  EXPECT_LE(actions.size(), 20u);
  for (const Action& action : actions) {
    EXPECT_EQ(action.kind, Kind::kShiftSamples) << action.evidence;
    EXPECT_FALSE(action.shares.empty()) << action.evidence;
  }
}

INSTANTIATE_TEST_SUITE_P(Members, NoiseTest, ::testing::Values(2, 3, 4, 8, 32));

}  // namespace
}  // namespace covey
