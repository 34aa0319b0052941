// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_tuning.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/mean_fixture.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = StepTuning::State;

// The last step of the search, whatever is measured.
constexpr uint64_t kSearchSteps = kTunerSamplesMax * kTrialSteps;

GroupWithLosses::Options TunedMeans(uint64_t seed) {
  GroupWithLosses::Options options = MeanOptions({.fused = true}, seed);
  options.hybrid.autotune = true;
  return options;
}

struct Used {
  size_t buckets = 0;
  StepRoute route;

  friend bool operator==(const Used&, const Used&) = default;
};
Used UsedBy(const Fleet& fleet, uint32_t rank) {
  const auto& pipelines = fleet.hybrids[rank]->model().pipelines();
  return {.buckets = pipelines.size(), .route = pipelines[0]->route()};
}

// Steps of a group whose links like some settings better than others. The time of a step is known
// in advance, because messages take none.
template <typename Group>
void StepInTime(Group& f, const std::function<double(const Used&)>& rate) {
  f.fleet.ring.Pass(absl::Seconds(1 / rate(UsedBy(f.fleet, f.members()[0]))));
  f.Step();
}

TEST(StepTuningTest, CandidatesDivideModelsOfAllSizes) {
  const std::vector<FusionLimits> candidates = FusionCandidates();
  EXPECT_EQ(candidates.front().bucket_bytes, 0u);
  uint64_t last = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    EXPECT_GT(candidates[i].bucket_bytes, last);
    last = candidates[i].bucket_bytes;
  }
  EXPECT_GE(last, 64u << 20);
}

TEST(StepTuningTest, NothingIsTunedUnlessAsked) {
  MeanGroup f(3, MeanOptions({.fused = true}, 1));
  const Used first = UsedBy(f.fleet, 0);
  for (uint64_t step = 1; step <= 3 * kTrialSteps; ++step) {
    f.Step();
    EXPECT_EQ(f.fleet.hybrids[0]->tuning().state(), State::kOff);
    EXPECT_EQ(UsedBy(f.fleet, 2), first);
  }
}

TEST(StepTuningTest, MembersUseTheSameSettingsInTheSameStep) {
  MeanGroup f(3, TunedMeans(1));
  std::set<size_t> buckets;
  std::set<std::pair<Algorithm, size_t>> routes;
  Used used = UsedBy(f.fleet, 0);
  for (uint64_t step = 1; step <= kSearchSteps + 2; ++step) {
    const Used next = UsedBy(f.fleet, 0);
    // They change between two trials alone.
    if (step % kTrialSteps != 1) {
      EXPECT_EQ(next, used) << "step " << step;
    }
    used = next;
    for (const uint32_t rank : {1u, 2u}) EXPECT_EQ(UsedBy(f.fleet, rank), used) << "step " << step;
    buckets.insert(used.buckets);
    routes.emplace(used.route.algorithm, used.route.slice_bytes);
    f.Step();
    f.CheckMeans(step);
    ASSERT_THAT(f.violations, IsEmpty()) << "step " << step;
  }
  EXPECT_EQ(buckets.size(), 2u);
  EXPECT_EQ(routes.size(), 9u);
  for (const uint32_t rank : {0u, 1u, 2u}) {
    EXPECT_EQ(f.fleet.hybrids[rank]->tuning().state(), State::kOff);
  }
}

TEST(StepTuningTest, StaysWithTheFastest) {
  for (const Used& best : {Used{.buckets = 3, .route = {Algorithm::kTree, 64 << 10}},
                           Used{.buckets = 1, .route = {Algorithm::kDirect, 256 << 10}}}) {
    MeanGroup f(3, TunedMeans(2));
    const auto rate = [&best](const Used& used) {
      return 10.0 + (used.buckets == best.buckets ? 5 : 0) +
             (used.route.algorithm == best.route.algorithm ? 5 : 0) +
             (used.route.slice_bytes == best.route.slice_bytes ? 5 : 0);
    };
    for (uint64_t step = 1; step <= kSearchSteps; ++step) StepInTime(f, rate);
    for (const uint32_t rank : {0u, 1u, 2u}) EXPECT_EQ(UsedBy(f.fleet, rank), best);
  }
}

// The next step may have been submitted when the members go over to other settings.
TEST(StepTuningTest, SomeMembersAreAStepAheadOfASwitch) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    MeanGroup f(3, TunedMeans(seed));
    const auto step_of = [&f](uint32_t rank) { return f.fleet.hybrids[rank]->step().value(); };
    while (step_of(0) < kSearchSteps) {
      for (const uint32_t rank : f.members()) {
        if (!f.Idle(rank) || step_of(rank) >= kSearchSteps) continue;
        // The tree is the fastest, and fewer buckets are.
        const Used used = UsedBy(f.fleet, rank);
        const bool is_fast = used.route.algorithm == Algorithm::kTree;
        if (rank == 0) f.fleet.ring.Pass(absl::Seconds((is_fast ? 1 : 5) + used.buckets));
        f.Begin(rank);
      }
      f.fleet.RunMessages(1 + random.Below(5));
      for (const uint32_t rank : f.members())
        ASSERT_TRUE(f.failures[rank].ok()) << f.failures[rank];
    }
    f.fleet.Run();
    for (const uint32_t rank : f.members()) {
      if (step_of(rank) < kSearchSteps) f.Begin(rank);
    }
    f.fleet.Run();
    f.CheckMeans(kSearchSteps);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST(StepTuningTest, MessagesAreAsLargeAsTheRouteSays) {
  MeanGroup f(3, TunedMeans(1));
  std::map<size_t, uint64_t> messages;  // of a step, by bytes of a slice
  for (uint64_t step = 1; step <= kSearchSteps; ++step) {
    const Used used = UsedBy(f.fleet, 0);
    const uint64_t before = f.fleet.group_messages;
    f.Step();
    // The last step of a trial has those of the agreement, too.
    if (step % kTrialSteps == 0 || used.buckets > 1) continue;
    if (used.route.algorithm != Algorithm::kAutomatic) continue;
    messages[used.route.slice_bytes] = f.fleet.group_messages - before;
  }
  // The fixture's slices have 16 bytes.
  EXPECT_GT(messages[0], messages[64 << 10]);
  EXPECT_GT(messages[64 << 10], 0u);
}

// Where values are on servers, buckets stay as they are.
TEST(StepTuningTest, MembersOfServersHaveTheSameBits) {
  GroupWithLosses::Options options;
  options.hybrid.autotune = true;
  GroupWithLosses f(3, options);
  std::set<Algorithm> algorithms;
  for (uint64_t step = 1; step <= kSearchSteps; ++step) {
    algorithms.insert(UsedBy(f.fleet, 0).route.algorithm);
    EXPECT_EQ(UsedBy(f.fleet, 0), UsedBy(f.fleet, 2));
    EXPECT_EQ(UsedBy(f.fleet, 0).buckets, 1u);
    f.Step();
    f.CheckAllWell(step);
    f.CheckUpdates(step);
    ASSERT_THAT(f.violations, IsEmpty()) << "step " << step;
  }
  EXPECT_EQ(algorithms.size(), 7u);
}

TEST(StepTuningTest, SearchesAgainWithOtherMembers) {
  MeanGroup f(3, TunedMeans(3));
  for (uint64_t step = 1; step <= kSearchSteps; ++step) f.Step();
  ASSERT_EQ(f.fleet.hybrids[0]->tuning().state(), State::kOff);
  // Rank 0 may be the one that measures.
  f.StepWithDeath(0, 5);
  for (const uint32_t rank : f.members()) {
    EXPECT_EQ(f.fleet.hybrids[rank]->tuning().state(), State::kTrial);
    EXPECT_EQ(UsedBy(f.fleet, rank).route, StepRoute());
  }
  f.CheckMeans(kSearchSteps + 1);
  for (uint64_t step = kSearchSteps + 2; step <= 2 * kSearchSteps + 2; ++step) {
    f.Step();
    f.CheckMeans(step);
  }
  EXPECT_THAT(f.violations, IsEmpty());
  EXPECT_EQ(f.fleet.hybrids[1]->tuning().state(), State::kOff);
}

// The group loses a member while some have gone over to other buckets and others have not.
TEST(StepTuningTest, AMemberMayDieAfterAnyMessageOfASwitch) {
  uint64_t mixed = 0;
  for (uint32_t victim = 0; victim < 3; ++victim) {
    for (uint64_t messages = 0; messages < 200; ++messages) {
      MeanGroup f(3, TunedMeans(1 + messages));
      for (uint64_t step = 1; step < kTrialSteps; ++step) f.Step();
      f.Begin();
      const auto begin_next = [&f] {
        for (const uint32_t rank : f.members()) {
          if (f.Idle(rank) && f.fleet.hybrids[rank]->step().value() == kTrialSteps) f.Begin(rank);
        }
      };
      for (uint64_t i = 0; i < messages; ++i) {
        f.fleet.RunMessages(1);
        begin_next();
      }
      f.Kill(victim);
      f.PlanWithoutTheDead();
      const uint32_t first = f.members()[0];
      const uint32_t second = f.members()[1];
      if (UsedBy(f.fleet, first).buckets != UsedBy(f.fleet, second).buckets) ++mixed;
      for (const uint32_t rank : f.members()) {
        f.Show(rank);
        f.fleet.RunMessages(messages % 5);
      }
      f.fleet.Run();
      begin_next();
      f.fleet.Run();
      f.CheckMeans(kTrialSteps + 1);
      ASSERT_EQ(UsedBy(f.fleet, first), UsedBy(f.fleet, second));
      for (uint64_t step = kTrialSteps + 2; step <= 4 * kTrialSteps; ++step) {
        f.Step();
        f.CheckMeans(step);
      }
      ASSERT_THAT(f.violations, IsEmpty()) << "member " << victim << " after " << messages;
    }
  }
  EXPECT_GT(mixed, 0u);
}

// Members that tune nothing have the same buckets.
TEST(StepTuningTest, AMemberWithAnotherModelIsNamed) {
  for (const bool autotune : {false, true}) {
    GroupWithLosses::Options options = TunedMeans(1);
    options.hybrid.autotune = autotune;
    MeanGroup f(4, options);
    HybridOptions other = options.hybrid;
    other.fusion.bucket_bytes = 0;
    const std::vector<TableId> tables = {TableId(1), TableId(2)};
    ASSERT_TRUE(f.fleet.hybrids[2]->SetTables(tables, other, kPatience).ok());
    f.Kill(3);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    for (const uint32_t rank : f.members()) {
      EXPECT_THAT(f.fleet.ring.communicator(rank).failure().message(),
                  HasSubstr("trains another model than"));
    }
  }
}

TEST(StepTuningTest, MessagesMayBeLost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    MeanGroup f(3, TunedMeans(seed));
    f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message&) { return !random.Chance(0.005); });
    for (uint64_t step = 1; step <= 5 * kTrialSteps; ++step) {
      f.Begin();
      for (int i = 0; i < 400 && !(f.Idle(0) && f.Idle(1) && f.Idle(2)); ++i) {
        f.fleet.Run();
        f.fleet.ring.Pass(absl::Milliseconds(100));
      }
      f.CheckMeans(step);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
  }
}

TEST(StepTuningTest, AMemberThatDrainsIsLetGoAtASwitch) {
  for (uint64_t steps = kTrialSteps - 3; steps <= kTrialSteps + 2; ++steps) {
    MeanGroup f(3, TunedMeans(1));
    for (uint64_t step = 1; step <= steps; ++step) f.Step();
    f.Drain(1);
    f.Plan({0, 2}, false);
    f.ShowAll();
    for (const uint32_t rank : {0u, 1u, 2u}) f.Begin(rank);
    f.fleet.Run();
    f.CheckAllWell(steps + 1);
    EXPECT_TRUE(f.failures[1].ok());
    for (uint64_t step = steps + 2; step <= 4 * kTrialSteps; ++step) {
      f.Step();
      f.CheckMeans(step);
    }
    EXPECT_THAT(f.violations, IsEmpty()) << "after step " << steps;
  }
}

}  // namespace
}  // namespace covey::worker
