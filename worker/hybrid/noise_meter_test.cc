// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/noise_meter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::IsEmpty;

float GradientOf(uint32_t rank, size_t tensor, size_t element) {
  return 0.1f * static_cast<float>(1 + rank) + static_cast<float>(tensor) -
         0.01f * static_cast<float>(element);
}

void StepOf(Fleet& fleet, const std::vector<uint64_t>& samples) {
  fleet.Step(samples, [](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = GradientOf(rank, tensor, i);
  });
}

GradientNorms ExpectedOf(const Fleet& fleet, const std::vector<uint64_t>& samples) {
  GradientNorms expected;
  for (const uint64_t own : samples) {
    expected.samples += own;
    expected.members += own > 0 ? 1 : 0;
  }
  for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
    for (size_t i = 0; i < fleet.model.ElementsOf(t); ++i) {
      double mean = 0;
      for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) {
        const double weight =
            static_cast<double>(samples[rank]) / static_cast<double>(expected.samples);
        const double gradient = GradientOf(rank, t, i);
        mean += weight * gradient;
        expected.member_square += weight * gradient * gradient;
      }
      expected.group_square += mean * mean;
    }
  }
  return expected;
}

std::vector<GradientNorms> Take(Fleet& fleet, uint32_t rank) {
  return fleet.hybrids[rank]->model().noise()->Take();
}

void ExpectSame(const GradientNorms& a, const GradientNorms& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.starts_over, b.starts_over);
  EXPECT_EQ(a.members, b.members);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.member_square, b.member_square);
  EXPECT_EQ(a.group_square, b.group_square);
}

class NoiseMeterTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, NoiseMeterTest, testing::Range(1u, 6u));

TEST_P(NoiseMeterTest, TakesTheNormsOfEachStepTheSameOnAllMembers) {
  for (const bool fused : {false, true}) {
    for (const uint32_t lag : {0u, 1u}) {
      for (const double norm_max : {0.0, 0.5}) {
        HybridOptions options{.lag = lag, .max_gradient_norm = norm_max, .measure_noise = true};
        if (!fused) options.fusion.bucket_bytes = 0;
        Fleet fleet(GetParam(), Model(), options);
        fleet.PullAll();
        std::vector<uint64_t> samples;
        for (uint32_t rank = 0; rank < GetParam(); ++rank)
          samples.push_back(rank == 3 ? 0 : 3 + rank);
        for (int step = 0; step < 3; ++step) StepOf(fleet, samples);
        ASSERT_TRUE(fleet.AllOk());
        const GradientNorms expected = ExpectedOf(fleet, samples);
        const std::vector<GradientNorms> first = Take(fleet, 0);
        ASSERT_EQ(first.size(), 3u);
        for (size_t i = 0; i < first.size(); ++i) {
          EXPECT_EQ(first[i].step, 1 + i);
          EXPECT_EQ(first[i].starts_over, i == 0);
          EXPECT_EQ(first[i].members, expected.members);
          EXPECT_EQ(first[i].samples, expected.samples);
          EXPECT_NEAR(first[i].member_square, expected.member_square,
                      1e-5 * expected.member_square);
          EXPECT_NEAR(first[i].group_square, expected.group_square, 1e-5 * expected.group_square);
        }
        for (uint32_t rank = 1; rank < GetParam(); ++rank) {
          const std::vector<GradientNorms> norms = Take(fleet, rank);
          ASSERT_EQ(norms.size(), first.size());
          for (size_t i = 0; i < norms.size(); ++i) ExpectSame(norms[i], first[i]);
        }
        EXPECT_THAT(Take(fleet, 0), IsEmpty());
      }
    }
  }
}

TEST_P(NoiseMeterTest, ChangesNoBitOfAStep) {
  Fleet measured(GetParam(), Model(), {.measure_noise = true});
  Fleet plain(GetParam(), Model());
  const std::vector<uint64_t> samples(GetParam(), 4);
  for (Fleet* fleet : {&measured, &plain}) {
    fleet->PullAll();
    for (int step = 0; step < 3; ++step) StepOf(*fleet, samples);
    ASSERT_TRUE(fleet->AllOk());
  }
  for (const auto& [key, values] : measured.values) {
    EXPECT_TRUE(SameBits(values, plain.values[key]));
  }
  EXPECT_EQ(plain.hybrids[0]->model().noise(), nullptr);
  EXPECT_EQ(plain.group_messages<measured.group_messages, GetParam()> 1);
}

TEST(NoiseMeterTest, StepsWithoutExamplesAreLeftOutAndNaNIsNot) {
  Fleet fleet(2, Model(), {.measure_noise = true});
  fleet.PullAll();
  StepOf(fleet, {0, 0});
  EXPECT_THAT(Take(fleet, 0), IsEmpty());
  fleet.Step({1, 1}, [](uint32_t rank, size_t, std::vector<float>& gradient) {
    gradient[0] = rank == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
  });
  const std::vector<GradientNorms> norms = Take(fleet, 0);
  ASSERT_EQ(norms.size(), 1u);
  EXPECT_TRUE(norms[0].starts_over);
  EXPECT_TRUE(std::isnan(norms[0].member_square));
  EXPECT_TRUE(std::isnan(norms[0].group_square));
  NoiseEstimator estimator;
  estimator.Add(norms[0]);
  EXPECT_FALSE(estimator.noise().has_value());
}

TEST(NoiseMeterTest, AProgramThatTakesNothingMissesTheOldest) {
  Fleet fleet(1, Model(), {.measure_noise = true});
  fleet.PullAll();
  for (size_t step = 0; step < kNormsMax + 5; ++step) StepOf(fleet, {1});
  const std::vector<GradientNorms> norms = Take(fleet, 0);
  ASSERT_EQ(norms.size(), kNormsMax);
  EXPECT_EQ(norms[0].step, 6u);
  EXPECT_TRUE(norms[0].starts_over);
  EXPECT_FALSE(norms[1].starts_over);
}

TEST(NoiseMeterTest, StepsOfWhichSomeBucketsLackExamplesAreLeftOut) {
  Fleet fleet(1);
  const auto meter = std::make_shared<NoiseMeter>(fleet.ring.communicator(0));
  meter->BeginGeneration({Step(8), Step(7)});
  const std::vector<float> sum = {3, 4};
  const auto add = [&](uint32_t bucket, uint64_t step, uint64_t samples) {
    meter->Add(fleet.ring.now(), bucket, Step(step),
               {.own_square = 9, .own_samples = samples, .sum = sum}, absl::InfiniteFuture(),
               fleet.ring.outbox(0));
  };
  add(1, 8, 3);  // Bucket 0 had finished it.
  add(0, 9, 3);
  add(1, 9, 0);  // The member was late with this bucket.
  EXPECT_THAT(meter->Take(), IsEmpty());
  add(0, 10, 3);
  add(1, 10, 3);
  const std::vector<GradientNorms> norms = meter->Take();
  ASSERT_EQ(norms.size(), 1u);
  EXPECT_EQ(norms[0].step, 10u);
  EXPECT_TRUE(norms[0].starts_over);
  EXPECT_EQ(norms[0].member_square, 2.0);
}

// A program that asks while the norms are on their way waits for them.
TEST(NoiseMeterTest, ACallWaitsForWhatIsOnItsWay) {
  Fleet fleet(2);
  const auto meter = std::make_shared<NoiseMeter>(fleet.ring.communicator(0));
  meter->BeginGeneration({Step(7)});
  const std::vector<float> sum = {3, 4};
  size_t calls = 0;
  meter->WhenKnown([&] { ++calls; });
  EXPECT_EQ(calls, 1u);
  const auto add = [&](uint64_t step) {
    meter->Add(fleet.ring.now(), 0, Step(step), {.own_square = 9, .own_samples = 3, .sum = sum},
               fleet.ring.now() + absl::Seconds(5), fleet.ring.outbox(0));
  };
  add(8);
  meter->WhenKnown([&] { ++calls; });
  EXPECT_EQ(calls, 1u);
  // The other member, which adds nothing, is in another generation.
  meter->BeginGeneration({Step(7)});
  EXPECT_EQ(calls, 2u);
  add(9);
  meter->WhenKnown([&] { ++calls; });
  EXPECT_EQ(calls, 2u);
  fleet.End();
  fleet.Run();  // Until no message refers to the numbers.
  EXPECT_EQ(calls, 3u);
  EXPECT_THAT(meter->Take(), IsEmpty());
}

// A member dies after any number of messages: nobody waits forever, and all survivors see the same
// from the step on that starts over.
TEST(NoiseMeterTest, SurvivorsOfADeathStartOverTogether) {
  for (const bool fused : {false, true}) {
    for (uint32_t victim = 0; victim < 3; ++victim) {
      bool over = false;
      for (uint64_t messages = 0; !over; ++messages) {
        GroupWithLosses::Options options = Case{.fused = fused}.OptionsOf(1 + messages);
        options.hybrid.measure_noise = true;
        GroupWithLosses f(3, options);
        f.Step();
        over = f.StepWithDeath(victim, messages);
        f.CheckAllWell(2);
        for (int step = 0; step < 2; ++step) f.Step();
        f.CheckAllWell(4);
        std::vector<std::vector<GradientNorms>> all;
        for (const uint32_t rank : f.members()) {
          size_t calls = 0;
          f.fleet.hybrids[rank]->model().noise()->WhenKnown([&] { ++calls; });
          EXPECT_EQ(calls, 1u);
          // Before that, only some of them may have the norms of the step in which it died.
          std::vector<GradientNorms> norms = Take(f.fleet, rank);
          const auto last = std::find_if(norms.rbegin(), norms.rend(),
                                         [](const GradientNorms& of) { return of.starts_over; });
          ASSERT_NE(last, norms.rend());
          norms.erase(norms.begin(), last.base() - 1);
          all.push_back(norms);
        }
        ASSERT_EQ(all[0].size(), all[1].size()) << "member " << victim << " after " << messages;
        for (size_t i = 0; i < all[0].size(); ++i) ExpectSame(all[0][i], all[1][i]);
        EXPECT_GE(all[0].size(), 2u);
        EXPECT_GE(all[0].front().step, 2u) << "nobody started over";
        EXPECT_EQ(all[0].back().step, 4u);
        EXPECT_EQ(all[0].back().members, 2u);
        ASSERT_THAT(f.violations, IsEmpty()) << "member " << victim << " after " << messages;
      }
    }
  }
}

}  // namespace
}  // namespace covey::worker
