// SPDX-License-Identifier: Apache-2.0

// Members of one group that go over to a new one, together with workers that come late.

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kFirstStep = 9;

class HybridNewGroupTest : public testing::TestWithParam<Case> {
 protected:
  static GroupWithLosses::Options FirstGroup(uint64_t seed) {
    GroupWithLosses::Options options = GetParam().OptionsOf(seed);
    options.members = {0, 1};
    return options;
  }
  // Worker 0 has come to the new group, and worker 2 comes.
  static void ExpectBothCountFromTheFirstStep(GroupWithLosses& f) {
    std::set<uint64_t> pushed;
    f.fleet.server.on_push = [&](const proto::PushRequest& push, const std::vector<float>&) {
      pushed.insert(push.step());
    };
    f.Join(2);
    for (const uint32_t rank : {0u, 2u}) {
      EXPECT_EQ(f.fleet.hybrids[rank]->step().value(), kFirstStep - 1) << rank;
    }
    f.Step();
    f.CheckAllWell(kFirstStep);
    f.Step();
    f.CheckAllWell(kFirstStep + 1);
    EXPECT_THAT(f.violations, IsEmpty());
    EXPECT_THAT(pushed, ElementsAre(kFirstStep, kFirstStep + 1));
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, HybridNewGroupTest,
                         testing::Values(Case{}, Case{.fused = true}, Case{.lag = 1}));

TEST_P(HybridNewGroupTest, WhoComesBetweenTwoSteps) {
  GroupWithLosses f(3, FirstGroup(1));
  f.Step();
  f.PlanNewGroup({0, 2}, kFirstStep);
  for (const uint32_t rank : {0u, 1u, 2u}) f.Show(rank);
  // The last one of the first group.
  for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
  f.fleet.Run();
  ExpectBothCountFromTheFirstStep(f);
}

TEST_P(HybridNewGroupTest, WhoComesOutOfTheMiddleOfAStep) {
  for (uint64_t messages = 0; messages < 10; ++messages) {
    GroupWithLosses f(3, FirstGroup(1 + messages));
    f.Step();
    f.Begin();
    f.fleet.RunMessages(messages);
    f.Kill(1);
    f.PlanNewGroup({0, 2}, kFirstStep);
    f.Show(0);
    f.Show(2);
    f.fleet.Run();
    ExpectBothCountFromTheFirstStep(f);
    ASSERT_FALSE(HasFailure()) << "after " << messages << " messages";
  }
}

// Worker 0 leaves its group in any step of a round, for a group whose first step is `first_step`.
// The new group pushes only what it has learned itself, with the samples behind that.
void LetOneComeOutOfAnyStepOfARound(uint64_t first_step, uint64_t overlap, bool fused) {
  constexpr uint64_t kSamplesPerStep = 1 + 3;
  for (uint64_t step = 1; step <= 2 * LocalGroupWithLosses::kSteps; ++step) {
    for (uint64_t messages = 0; messages < 40; messages += 4) {
      LocalGroupWithLosses f(3, overlap, fused, 1 + messages, {0, 1});
      for (uint64_t before = 1; before < step; ++before) f.Step();
      f.Begin();
      f.fleet.RunMessages(messages);
      f.Kill(1);
      f.PlanNewGroup({0, 2}, first_step);
      const GroupId old_group = f.fleet.ring.communicator(0).id();
      uint64_t pushes = 0;
      f.fleet.server.on_push = [&](const proto::PushRequest& push, const std::vector<float>& sum) {
        if (push.id().producer() == old_group.value()) return;
        ++pushes;
        // A bucket of worker 0 may do its interrupted step again before worker 2 takes part.
        const auto steps = static_cast<float>(push.samples() / kSamplesPerStep);
        const auto alone = static_cast<float>(push.samples() % kSamplesPerStep);
        const float learned = steps * f.Lesson({0, 2}) + alone * f.Lesson({0});
        const auto samples = static_cast<float>(push.samples());
        for (const float element : sum) EXPECT_NEAR(element / samples, -learned, 0.001f);
      };
      f.Show(0);
      f.Show(2);
      f.fleet.Run();
      f.Join(2);
      EXPECT_EQ(pushes, 0u);
      const uint64_t joined_at = f.fleet.hybrids[0]->step().value();
      // The step that worker 0 does again.
      if (f.fleet.hybrids[2]->step().value() < joined_at) f.Begin(2);
      f.fleet.Run();
      EXPECT_GE(joined_at, first_step - 1);
      for (uint64_t after = 0; after < 2 * LocalGroupWithLosses::kSteps; ++after) f.Step();
      f.CheckAllWell(joined_at + 2 * LocalGroupWithLosses::kSteps);
      EXPECT_THAT(f.violations, IsEmpty());
      // The step that was done again may have ended a round.
      EXPECT_GE(pushes, 2 * f.fleet.model.shards());
      EXPECT_LE(pushes, 3 * f.fleet.model.shards());
      ASSERT_FALSE(testing::Test::HasFailure())
          << "step " << step << " after " << messages << " messages, overlap " << overlap;
    }
  }
}

class HybridNewGroupLocalTest : public testing::TestWithParam<std::tuple<uint64_t, bool>> {};
INSTANTIATE_TEST_SUITE_P(Cases, HybridNewGroupLocalTest,
                         testing::Combine(testing::Values(0, 2), testing::Bool()));

TEST_P(HybridNewGroupLocalTest, RoundsStayInTheOldGroup) {
  const auto [overlap, fused] = GetParam();
  LetOneComeOutOfAnyStepOfARound(3 * LocalGroupWithLosses::kSteps + 1, overlap, fused);
}

TEST_P(HybridNewGroupLocalTest, AlsoWhenTheStepsOfTheNewGroupAreNoLater) {
  const auto [overlap, fused] = GetParam();
  LetOneComeOutOfAnyStepOfARound(1, overlap, fused);
}

}  // namespace
}  // namespace covey::worker
