// SPDX-License-Identifier: Apache-2.0

// A group that loses members in the middle of a step.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug_switch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A member dies after so many messages of the second step. True when the step was over before.
bool LetOneDie(const Case& with, uint32_t victim, uint64_t messages,
               std::vector<std::string>& violations) {
  GroupWithLosses f(3, with.OptionsOf(1 + messages));
  f.Step();
  f.CheckAllWell(1);
  const bool over = f.StepWithDeath(victim, messages);
  f.CheckAllWell(2);
  f.CheckUpdates(2);
  f.Step();
  f.CheckAllWell(3);
  f.CheckUpdates(3);
  violations = f.violations;
  return over;
}

class HybridRecoveryTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, HybridRecoveryTest,
                         testing::Values(Case{}, Case{.fused = true}, Case{.lag = 1},
                                         Case{.algorithm = Algorithm::kDirect},
                                         Case{.algorithm = Algorithm::kTree},
                                         Case{.algorithm = Algorithm::kHalvingDoubling},
                                         Case{.algorithm = Algorithm::kHierarchical}));

TEST_P(HybridRecoveryTest, AMemberMayDieAfterAnyMessageOfAStep) {
  for (uint32_t victim = 0; victim < 3; ++victim) {
    bool over = false;
    for (uint64_t messages = 0; !over; ++messages) {
      std::vector<std::string> violations;
      over = LetOneDie(GetParam(), victim, messages, violations);
      ASSERT_THAT(violations, IsEmpty()) << "member " << victim << " after " << messages;
    }
  }
}

TEST_P(HybridRecoveryTest, MembersDieOneAfterTheOtherUntilOneIsLeft) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    GroupWithLosses f(5, GetParam().OptionsOf(seed));
    const uint64_t step = f.StepUntilOneIsLeft(random);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
  }
}

TEST_P(HybridRecoveryTest, ANewcomerThatDiesBeforeTheCutBreaksNothing) {
  for (uint64_t messages = 0; messages < 60; ++messages) {
    GroupWithLosses::Options options = GetParam().OptionsOf(1 + messages);
    options.members = {0, 1};
    GroupWithLosses f(3, options);
    f.Step();
    f.Plan({0, 1, 2}, false);
    f.Show(0);
    if (messages % 3 != 0) f.Show(1);
    if (messages % 3 != 1) f.Show(2);
    for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
    f.fleet.RunMessages(messages);
    f.Kill(2);
    if (messages % 2 == 0) f.fleet.Run();
    f.Plan({0, 1}, false);
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
    f.Step();
    f.CheckAllWell(3);
    f.CheckUpdates(3);
    f.Step();
    f.CheckAllWell(4);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
    // No member had met it, so the plan changes between two steps, as any other.
    if (messages % 3 == 0) {
      EXPECT_EQ(f.fleet.hybrids[0]->recovery().recoveries(), 0u);
    }
  }
}

TEST_P(HybridRecoveryTest, AMemberThatWasFrozenIsToldAndChangesNothing) {
  for (uint64_t messages = 0; messages < 100; messages += 3) {
    GroupWithLosses f(3, GetParam().OptionsOf(1 + messages));
    f.Step();
    f.Begin();
    f.fleet.RunMessages(messages);
    f.Freeze(1);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    f.Step();
    f.fleet.ring.Thaw(1);
    f.fleet.Run();
    f.Show(1);
    f.fleet.Run();
    f.CheckAllWell(3);
    f.CheckUpdates(3);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
    EXPECT_TRUE(f.Idle(1));
    // Some of what it was sent while it stood still is lost.
    f.Begin(1);
    EXPECT_TRUE(absl::IsAborted(f.failures[1]) || absl::IsUnavailable(f.failures[1]))
        << f.failures[1];
  }
}

TEST_P(HybridRecoveryTest, AMemberDiesWhileTheOthersPull) {
  for (uint64_t messages = 0; messages < 60; ++messages) {
    GroupWithLosses f(3, GetParam().OptionsOf(1 + messages));
    f.Step();
    for (const uint32_t rank : {0u, 1u}) f.Pull(rank);
    f.fleet.RunMessages(messages / 2);
    if (messages % 2 == 0) f.Pull(2);
    f.fleet.RunMessages(messages / 2);
    f.Kill(1);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    if (messages % 2 == 1) f.Pull(2);
    f.fleet.Run();
    f.CheckAllWell(1);
    f.Step();
    f.CheckAllWell(2);
    f.CheckUpdates(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
  }
}

TEST_P(HybridRecoveryTest, AMemberThatDrainsIsLetGoBetweenTwoSteps) {
  GroupWithLosses f(3, GetParam().OptionsOf(1));
  f.Step();
  f.Drain(1);
  f.Plan({0, 2}, false);
  f.ShowAll();
  for (const uint32_t rank : {0u, 1u, 2u}) f.Begin(rank);
  f.fleet.Run();
  f.CheckAllWell(2);
  EXPECT_TRUE(f.failures[1].ok());
  f.Begin(1);
  EXPECT_EQ(f.failures[1].code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(f.failures[1].message(), HasSubstr("was asked to leave"));
  f.Step();
  f.CheckAllWell(3);
  EXPECT_EQ(f.fleet.hybrids[0]->recovery().recoveries(), 0u);
  // The last one goes by itself.
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.ShowAll();
  f.fleet.Run();
  f.Step();
  EXPECT_TRUE(f.failures[0].ok());
  f.Drain(0);
  f.Show(0);
  f.Begin(0);
  f.fleet.Run();
  EXPECT_TRUE(f.failures[0].ok());
  f.Begin(0);
  EXPECT_EQ(f.failures[0].code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(f.violations, IsEmpty());
}

TEST(HybridRecoveryOneTest, WhoSteppedAsideDoesTheStepAgainWithoutAGradient) {
  GroupWithLosses f(3, Case{}.OptionsOf(1));
  f.LetGoOnWith(2);
  f.ShowAll();
  f.Step();
  for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
  f.fleet.Run();
  f.fleet.ring.Pass(absl::Seconds(1));
  f.fleet.withheld_table = 2;
  f.fleet.Run();
  EXPECT_GT(f.fleet.hybrids[2]->steps_aside(), 0u);
  f.Kill(0);
  f.PlanWithoutTheDead();
  f.ShowAll();
  f.fleet.withheld_table = 0;
  f.fleet.Run();
  f.Begin(2);
  f.fleet.Run();
  for (const uint32_t rank : {1u, 2u}) EXPECT_TRUE(f.failures[rank].ok()) << f.failures[rank];
  EXPECT_TRUE(f.Idle(1));
  if (!f.Idle(2)) f.Begin(1);
  f.fleet.Run();
  EXPECT_TRUE(f.Idle(2));
  EXPECT_THAT(f.violations, IsEmpty());
}

TEST(HybridRecoveryOneTest, WhatRoundingLostCountsOnce) {
  Model model = GroupWithLosses::Integers();
  model.spec.set_gradient_format(proto::WIRE_INT8_BLOCK);
  for (uint64_t messages = 0; messages < 120; messages += 2) {
    GroupWithLosses::Options options = Case{.fused = messages % 4 == 0}.OptionsOf(1 + messages);
    options.model = model;
    GroupWithLosses f(3, options);
    f.Step();
    f.Begin();
    f.fleet.RunMessages(messages);
    f.Kill(messages % 3);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    f.CheckUpdates(2);
    // Sums of equal elements lose next to nothing, so all values are near those of whole sums.
    const std::vector<float>& values = f.fleet.values[{f.members()[0], 2}];
    for (const float value : values) {
      EXPECT_NEAR(value, std::round(values[0] * 60) / 60, 0.5) << messages;
    }
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
  }
}

// Of both rounds no step is lost, and none counts twice, whenever a member dies.
void LetOneDieInAnyStepOfARound(uint64_t overlap, bool fused) {
  for (uint64_t death = 1; death <= 2 * LocalGroupWithLosses::kSteps; ++death) {
    for (uint64_t messages = 0; messages < 60; messages += 3) {
      LocalGroupWithLosses f(3, overlap, fused, 1 + messages);
      const float whole = f.Lesson({0, 1, 2});
      for (uint64_t step = 1; step < death; ++step) f.Step();
      f.Begin();
      f.fleet.RunMessages(messages);
      f.Kill(messages % 3);
      if (messages % 2 == 0) f.fleet.Run();
      f.PlanWithoutTheDead();
      f.ShowAll();
      f.fleet.Run();
      const float rest = f.Lesson(f.members());
      // With overlap one step may be part of no push.
      const float lost = overlap > 0 ? std::max(whole, rest) : 0;
      for (uint64_t step = death; step <= 2 * LocalGroupWithLosses::kSteps + 1; ++step) {
        if (step > death) f.Step();
        f.CheckAllWell(step);
        const auto before = static_cast<float>(death - 1);
        const auto after = static_cast<float>(step - death);
        const float least = std::min(whole, rest);
        f.CheckLearned(before * whole + least + after * rest - lost,
                       before * whole + std::max(whole, rest) + after * rest);
      }
      f.CheckUpdates(2);
      ASSERT_THAT(f.violations, IsEmpty()) << "step " << death << " after " << messages;
    }
  }
}

TEST(HybridRecoveryLocalTest, NoStepOfARoundIsLostWithAMember) {
  for (const bool fused : {false, true}) LetOneDieInAnyStepOfARound(0, fused);
}

TEST(HybridRecoveryLocalTest, WithOverlapAtMostOneStepIs) {
  for (const bool fused : {false, true}) LetOneDieInAnyStepOfARound(2, fused);
}

TEST(HybridRecoveryLocalTest, NorIsItWhenAnotherDiesWhileTheyMeet) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    LocalGroupWithLosses f(5, 0, seed % 2 == 0, seed);
    float least = 0;
    float most = 0;
    for (uint64_t step = 1; step <= 2 * LocalGroupWithLosses::kSteps; ++step) {
      float fewest = f.Lesson(f.members());
      float all = fewest;
      const size_t members = f.members().size();
      f.Begin();
      if (f.members().size() > 2 && random.Chance(0.4)) {
        for (uint64_t deaths = 1 + random.Below(2); deaths > 0; --deaths) {
          f.fleet.RunMessages(random.Below(120));
          f.Kill(f.members()[random.Below(f.members().size())]);
          if (random.Chance(0.3)) f.fleet.Run();
          f.PlanWithoutTheDead();
          for (const uint32_t rank : f.members()) {
            if (random.Chance(0.7)) f.Show(rank);
            f.fleet.RunMessages(random.Below(20));
          }
          const float lesson = f.Lesson(f.members());
          fewest = std::min(fewest, lesson);
          all = std::max(all, lesson);
        }
        f.ShowAll();
      }
      f.fleet.Run();
      // The members that had finished it may be the two that die.
      least += f.members().size() + 1 < members ? 0 : fewest;
      most += all;
      f.CheckAllWell(step);
      f.CheckLearned(least, most);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
    f.CheckUpdates(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST(HybridRecoveryOneTest, DistributedGroupsSayThatTheyCannotGoOn) {
  GroupWithLosses::Options options = Case{}.OptionsOf(1);
  options.hybrid.synchronization = Synchronization::kDistributed;
  GroupWithLosses f(3, options);
  f.Begin();
  f.fleet.RunMessages(5);
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.ShowAll();
  f.fleet.Run();
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(f.Idle(rank));
    EXPECT_EQ(f.failures[rank].code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(f.failures[rank].message(), HasSubstr("distributed synchronization keeps"));
  }
}

// The members that are left would wait longer for each other than the program allows.
void LetThemNeverMeet(bool fused, bool pull) {
  GroupWithLosses f(3, Case{.fused = fused}.OptionsOf(1));
  f.Step();
  if (pull) {
    for (const uint32_t rank : f.members()) f.Pull(rank);
  } else {
    f.Begin();
  }
  f.fleet.RunMessages(2);
  const absl::Time deadline = f.fleet.ring.now() + kPatience;
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.fleet.ring.Freeze(1);
  f.Show(0);
  f.fleet.Run();
  ASSERT_FALSE(f.Idle(0));
  EXPECT_EQ(f.fleet.hybrids[0]->NextWake(), deadline);
  f.fleet.ring.Pass(kPatience);
  f.fleet.Run();
  EXPECT_TRUE(f.Idle(0));
  EXPECT_EQ(f.failures[0].code(), absl::StatusCode::kDeadlineExceeded) << f.failures[0];
  EXPECT_THAT(f.failures[0].message(), HasSubstr("still waits for all members to meet"));
}

TEST(HybridRecoveryOneTest, DeadlinesHoldWhileMembersMeet) {
  for (const bool fused : {false, true}) {
    for (const bool pull : {false, true}) LetThemNeverMeet(fused, pull);
  }
}

TEST(HybridRecoveryOneTest, RecoveriesAreCountedAndTimed) {
  GroupWithLosses f(3, Case{}.OptionsOf(1));
  f.Step();
  f.Begin();
  f.fleet.RunMessages(10);
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.Show(0);
  f.fleet.ring.Pass(absl::Seconds(2));
  f.ShowAll();
  f.fleet.Run();
  EXPECT_EQ(f.fleet.hybrids[0]->recovery().recoveries(), 1u);
  EXPECT_EQ(f.fleet.hybrids[0]->recovery().time(), absl::Seconds(2));
  EXPECT_EQ(f.fleet.hybrids[1]->recovery().time(), absl::ZeroDuration());
}

class PlantedRecoveryTest : public testing::TestWithParam<PlantedBug> {
 protected:
  ~PlantedRecoveryTest() override { PlantBug(PlantedBug::kNone); }
};
INSTANTIATE_TEST_SUITE_P(Bugs, PlantedRecoveryTest,
                         testing::Values(PlantedBug::kPartialSumAsSuccess,
                                         PlantedBug::kStaleGroupGeneration));

TEST_P(PlantedRecoveryTest, IsFound) {
  PlantBug(GetParam());
  std::vector<std::string> violations;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kDirect, Algorithm::kTree}) {
    for (uint64_t messages = 0; messages < 60; ++messages) {
      std::vector<std::string> found;
      LetOneDie({.algorithm = algorithm}, 2, messages, found);
      violations.insert(violations.end(), found.begin(), found.end());
    }
  }
  EXPECT_THAT(violations, Not(IsEmpty()));
}

}  // namespace
}  // namespace covey::worker
