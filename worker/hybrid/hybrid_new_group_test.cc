// SPDX-License-Identifier: Apache-2.0

// Members of one group that go over to a new one, together with workers that come late.

#include <set>

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
  static Mourners::Options FirstGroup(uint64_t seed) {
    Mourners::Options options = GetParam().OptionsOf(seed);
    options.members = {0, 1};
    return options;
  }
  // Worker 0 has come to the new group, and worker 2 comes.
  static void ExpectBothCountFromTheFirstStep(Mourners& f) {
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
  Mourners f(3, FirstGroup(1));
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
    Mourners f(3, FirstGroup(1 + messages));
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

}  // namespace
}  // namespace covey::worker
