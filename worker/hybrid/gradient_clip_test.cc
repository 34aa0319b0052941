// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/gradient_clip.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/hybrid/bucket_consensus.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::IsEmpty;

// Plain SGD at a rate of 1, so that a step changes the values by the clipped gradient.
Model Plain() {
  Model model;
  model.spec = proto::TableSpec();
  model.spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  model.spec.mutable_learning_rate()->set_base(1);
  model.spec.mutable_contract()->set_kind(proto::Contract::BSP);
  return model;
}

HybridOptions ClipTo(double norm, Synchronization where = Synchronization::kCentralized) {
  return {.synchronization = where, .max_gradient_norm = norm};
}

float GradientOf(uint32_t rank, size_t tensor, size_t element) {
  return 0.1f * static_cast<float>(1 + rank) + static_cast<float>(tensor) -
         0.01f * static_cast<float>(element);
}

// One step of members with 1, 2, ... samples.
void StepOf(Fleet& fleet) {
  std::vector<uint64_t> samples;
  for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) samples.push_back(1 + rank);
  fleet.Step(samples, [](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = GradientOf(rank, tensor, i);
  });
}

// The mean gradient of that step, by tensor, and its norm.
struct Expected {
  std::vector<std::vector<double>> gradient;
  double norm = 0;
};
Expected ExpectedOf(const Fleet& fleet) {
  Expected expected;
  for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
    std::vector<double>& mean = expected.gradient.emplace_back(fleet.model.ElementsOf(t));
    for (size_t i = 0; i < mean.size(); ++i) {
      double samples = 0;
      for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) {
        mean[i] += GradientOf(rank, t, i) * (1 + rank);
        samples += 1 + rank;
      }
      mean[i] /= samples;
      expected.norm += mean[i] * mean[i];
    }
  }
  expected.norm = std::sqrt(expected.norm);
  return expected;
}

class GradientClipTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, GradientClipTest, testing::Range(1u, 6u));

TEST_P(GradientClipTest, ScalesTheGroupsMeanGradientToTheNorm) {
  for (const Synchronization where :
       {Synchronization::kCentralized, Synchronization::kDistributed}) {
    Fleet fleet(GetParam(), Plain(), ClipTo(1.5, where));
    fleet.PullAll();
    const auto before = fleet.values;
    StepOf(fleet);
    ASSERT_TRUE(fleet.AllOk());
    const Expected expected = ExpectedOf(fleet);
    ASSERT_GT(expected.norm, 1.5);
    for (const auto& [key, values] : fleet.values) {
      EXPECT_TRUE(SameBits(values, fleet.values[{0, key.second}]));
      for (size_t i = 0; i < values.size(); ++i) {
        const double change = expected.gradient[key.second][i] * 1.5 / (expected.norm + 1e-6);
        EXPECT_NEAR(values[i], before.at(key)[i] - change, 2e-6);
      }
    }
    const double norm = *fleet.hybrids[0]->model().gradient_norm();
    EXPECT_NEAR(norm, expected.norm, 1e-6 * expected.norm);
    for (const auto& hybrid : fleet.hybrids) EXPECT_EQ(*hybrid->model().gradient_norm(), norm);
  }
}

TEST_P(GradientClipTest, LeavesSmallerGradientsAlone) {
  Fleet clipped(GetParam(), Plain(), ClipTo(1000));
  Fleet plain(GetParam(), Plain());
  for (Fleet* fleet : {&clipped, &plain}) {
    fleet->PullAll();
    for (int step = 0; step < 3; ++step) StepOf(*fleet);
    ASSERT_TRUE(fleet->AllOk());
  }
  for (const auto& [key, values] : clipped.values) {
    EXPECT_TRUE(SameBits(values, plain.values[key]));
  }
  EXPECT_FALSE(plain.hybrids[0]->model().gradient_norm().has_value());
}

TEST(GradientClipTest, StepsThatLagAreClippedToo) {
  HybridOptions options = ClipTo(1.5);
  options.lag = 1;
  Fleet fleet(3, Plain(), options);
  fleet.PullAll();
  for (int step = 0; step < 4; ++step) StepOf(fleet);
  EXPECT_TRUE(fleet.AllOk());
  EXPECT_NEAR(*fleet.hybrids[1]->model().gradient_norm(), ExpectedOf(fleet).norm, 1e-5);
}

TEST(GradientClipTest, AGradientThatIsNotFiniteIsNotHidden) {
  Fleet fleet(2, Plain(), ClipTo(1.5));
  fleet.PullAll();
  float pushed = 0;
  fleet.server.on_push = [&](const proto::PushRequest&, const std::vector<float>& sum) {
    for (const float element : sum) {
      if (!std::isfinite(element)) pushed = element;
    }
  };
  fleet.Step({1, 1}, [](uint32_t, size_t tensor, std::vector<float>& gradient) {
    gradient[0] = tensor == 1 ? std::numeric_limits<float>::infinity() : 1;
  });
  EXPECT_TRUE(std::isinf(pushed));
}

// Equal gradients have the same mean whoever contributes: all pushes of all steps are clipped
// alike, unless the norm of a step that is done again for some tensors is that of these alone.
TEST(GradientClipTest, AStepThatIsDoneAgainIsClippedByTheNormThatItHad) {
  constexpr double kNorm = 2.5;
  const double all = std::sqrt(5 + 4 + 7 + 1 + 2 + 3 + 3);
  for (const bool fused : {false, true}) {
    for (uint32_t victim = 0; victim < 3; ++victim) {
      bool over = false;
      for (uint64_t messages = 0; !over; ++messages) {
        GroupWithLosses::Options options = Case{.fused = fused}.OptionsOf(1 + messages);
        options.hybrid.max_gradient_norm = kNorm;
        options.gradient = [](uint32_t) { return -1.0f; };
        GroupWithLosses f(3, options);
        f.fleet.server.on_push = [&f, all](const proto::PushRequest& push,
                                           const std::vector<float>& sum) {
          const double expected = -kNorm / (all + 1e-6) * static_cast<double>(push.samples());
          for (const float element : sum) {
            if (std::abs(element - expected) > 1e-5) {
              f.violations.push_back(absl::StrCat(element, " in place of ", expected));
            }
          }
        };
        f.Step();
        f.CheckAllWell(1);
        f.Begin();
        over = !f.fleet.RunMessages(messages);
        f.Kill(victim);
        if (messages % 2 == 0) f.fleet.Run();
        f.PlanWithoutTheDead();
        f.ShowAll();
        f.fleet.Run();
        f.CheckAllWell(2);
        f.CheckUpdates(2);
        f.Step();
        f.CheckAllWell(3);
        ASSERT_THAT(f.violations, IsEmpty()) << "member " << victim << " after " << messages;
      }
    }
  }
}

// The shards of a step take the pushes of two generations: some with the member that died, some
// without it. The factor is that of the first, if any survivor knows it.
TEST(GradientClipTest, AStepThatNobodyHasFinishedKeepsTheNormThatItHad) {
  const std::map<uint64_t, double> mean_of_samples = {
      {6, 14.0 / 6}, {5, 13.0 / 5}, {4, 10.0 / 4}, {3, 5.0 / 3}};
  size_t mixed = 0;
  for (uint32_t victim = 0; victim < 3; ++victim) {
    bool over = false;
    for (uint64_t messages = 0; !over; ++messages) {
      GroupWithLosses::Options options = Case{}.OptionsOf(1 + messages);
      options.hybrid.max_gradient_norm = 2.5;
      GroupWithLosses f(3, options);
      std::vector<double> factors;
      std::set<uint64_t> samples;
      f.fleet.server.on_push = [&](const proto::PushRequest& push, const std::vector<float>& sum) {
        if (push.step() != 2) return;
        samples.insert(push.samples());
        const auto divisor = static_cast<double>(push.samples());
        for (const float element : sum) {
          factors.push_back(-element / divisor / mean_of_samples.at(push.samples()));
        }
      };
      f.Step();
      f.Begin();
      over = !f.fleet.RunMessages(messages);
      f.Kill(victim);
      bool is_known = false;
      for (uint32_t rank = 0; rank < 3; ++rank) {
        const auto norm = f.fleet.hybrids[rank]->Progress().norm;
        is_known |= rank != victim && norm && norm->step == Step(2);
      }
      f.PlanWithoutTheDead();
      f.ShowAll();
      f.fleet.Run();
      f.CheckAllWell(2);
      ASSERT_THAT(f.violations, IsEmpty()) << "member " << victim << " after " << messages;
      if (!is_known) continue;
      if (samples.size() > 1) ++mixed;
      for (const double factor : factors) {
        ASSERT_NEAR(factor, factors[0], 1e-5) << "member " << victim << " after " << messages;
      }
    }
  }
  EXPECT_GT(mixed, 10u);
}

TEST(GradientClipTest, WaitsForTheBucketsThatGoThroughTheStep) {
  Fleet fleet(1, Plain());
  const auto clip = std::make_shared<GradientClip>(fleet.ring.communicator(0), 5);
  clip->BeginGeneration({Step(8), Step(7), Step(7)}, std::nullopt);
  const std::vector<float> sum = {12, 16};
  std::vector<float> factors;
  const auto add = [&](uint32_t bucket, uint64_t step) {
    clip->Add(
        fleet.ring.now(), bucket, Step(step), sum, 2, absl::InfiniteFuture(),
        [&](absl::Time, float factor, Outbox&) { factors.push_back(factor); },
        fleet.ring.outbox(0));
  };
  add(1, 8);
  EXPECT_THAT(factors, IsEmpty());
  add(2, 8);  // Bucket 0 has finished step 8.
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_NEAR(factors[0], 5 / std::sqrt(200), 1e-6);
  add(1, 9);
  add(2, 9);
  ASSERT_EQ(factors.size(), 2u);
  add(0, 9);
  EXPECT_EQ(factors.size(), 5u);
}

TEST(AgreeOnNormTest, TakesTheFirstThatIsToldOfTheStep) {
  const GradientNorm other{.step = Step(4), .norm = 1};
  const GradientNorm norm{.step = Step(5), .norm = 2};
  const std::vector<MemberProgress> members = {{}, {.norm = other}, {.norm = norm}};
  EXPECT_EQ(AgreeOnNorm(members, Step(5)), norm);
  EXPECT_EQ(AgreeOnNorm(members, Step(6)), std::nullopt);
}

}  // namespace
}  // namespace covey::worker
