// SPDX-License-Identifier: Apache-2.0

// A member that is late, and a group that need not wait for it.

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/hybrid_fixture.h"

namespace covey::worker {
namespace {

constexpr absl::Duration kGrace = absl::Milliseconds(100);

// A group that goes on with `minimum` members, `late` of which take no part unless told to. Plain
// SGD with rate 1, gradients of 1, so that values count steps.
class LateFleet {
 public:
  LateFleet(uint32_t members, uint32_t minimum, std::vector<uint32_t> late, bool fused,
            uint64_t seed)
      : fleet(members, CountingModel(), {.fusion = {.bucket_bytes = fused ? 1u << 20 : 0u}}, seed),
        late(std::move(late)) {
    fleet.PullAll();
    fleet.outcomes.clear();
    SetRule(minimum);
  }
  void SetRule(uint32_t minimum) {
    proto::ClusterView view = ViewWithTables(fleet.ring.size(), fleet.model);
    view.set_epoch(++epoch_);
    view.mutable_groups(0)->set_minimum_members(minimum);
    view.mutable_groups(0)->set_grace_ms(absl::ToInt64Milliseconds(kGrace));
    for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) fleet.ShowView(rank, view);
  }

  static Model CountingModel() {
    Model model;
    model.tables = {{5, 4, 7, 1, 6, 3}, {2, 3, 4}, {3, 1, 2}};
    model.spec.clear_optimizer();
    model.spec.mutable_learning_rate()->Clear();
    model.spec.mutable_learning_rate()->set_base(1);
    return model;
  }

  bool IsLate(uint32_t rank) const {
    return std::find(late.begin(), late.end(), rank) != late.end();
  }
  void Begin(uint32_t rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
  }
  void Submit(uint32_t rank, size_t tensor, float slope, uint64_t samples) {
    std::vector<float>& gradient = fleet.gradients[{rank, tensor}];
    std::fill(gradient.begin(), gradient.end(), -slope);
    fleet.Submit(rank, tensor, samples);
  }
  // One step of `rank`'s program; its gradient is -`slope`.
  void StepOf(uint32_t rank, float slope, uint64_t samples) {
    Begin(rank);
    for (const size_t t : fleet.RandomOrder()) Submit(rank, t, slope, samples);
  }
  void StepOfTheOthers(float slope) {
    for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) {
      if (!IsLate(rank)) StepOf(rank, slope, 1);
    }
    fleet.Run();
  }
  // How much the values of `rank` have grown since the beginning.
  float Grown(uint32_t rank, size_t tensor = 0) const {
    return fleet.values.at({rank, tensor})[2] - Model::FirstValue(tensor, 2);
  }
  void Pass(absl::Duration time) {
    fleet.ring.Pass(time);
    fleet.Run();
  }

  Fleet fleet;
  const std::vector<uint32_t> late;

 private:
  uint64_t epoch_ = 2;
};

class HybridLatenessTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Fused, HybridLatenessTest, testing::Bool());

TEST_P(HybridLatenessTest, TheGroupGoesOnAfterTheGraceWithTheSumOfThoseWhoCame) {
  for (uint32_t late = 0; late < 4; ++late) {
    LateFleet f(4, 3, {late}, GetParam(), late + 1);
    f.StepOfTheOthers(1);
    EXPECT_TRUE(f.fleet.outcomes.empty()) << "the grace has not passed";
    f.Pass(kGrace / 2);
    EXPECT_TRUE(f.fleet.outcomes.empty());
    f.Pass(kGrace);
    EXPECT_EQ(f.fleet.outcomes.size(), 3 * f.fleet.model.tables.size());
    EXPECT_TRUE(f.fleet.AllOk());
    // The mean over three, not four.
    EXPECT_NEAR(f.Grown((late + 1) % 4), 1, 1e-5);
    EXPECT_EQ(f.fleet.hybrids[late]->steps_aside(), 1u);
    EXPECT_EQ(f.fleet.hybrids[(late + 1) % 4]->steps_aside(), 0u);
  }
}

TEST_P(HybridLatenessTest, ALateProgramBeginsWithTheGroupsStep) {
  LateFleet f(3, 2, {1}, GetParam(), 5);
  f.StepOfTheOthers(1);
  f.Pass(2 * kGrace);
  f.StepOfTheOthers(1);
  f.Pass(2 * kGrace);
  EXPECT_TRUE(f.fleet.AllOk());
  f.fleet.outcomes.clear();
  // The program began at step 1, and comes now; its step is the group's.
  f.StepOf(1, 1000, 1);
  EXPECT_EQ(f.fleet.hybrids[1]->step().value(), 3u);
  EXPECT_EQ((f.fleet.steps[{1, 0}]), Step(3));
  EXPECT_EQ((f.fleet.steps[{0, 0}]), Step(2));
}

TEST_P(HybridLatenessTest, AProgramThatBeganInTimeAndEndsLateIsDropped) {
  LateFleet f(3, 2, {1}, GetParam(), 6);
  f.fleet.hybrids[1]->BeginStep(f.fleet.ring.now(), f.fleet.ring.outbox(1));
  ASSERT_EQ(f.fleet.hybrids[1]->step().value(), 1u);
  for (int step = 0; step < 3; ++step) {
    f.StepOfTheOthers(1);
    f.Pass(2 * kGrace);
  }
  EXPECT_EQ(f.fleet.hybrids[1]->steps_aside(), 3u);
  f.fleet.outcomes.clear();
  for (const size_t t : f.fleet.RandomOrder()) {
    std::fill(f.fleet.gradients[{1, t}].begin(), f.fleet.gradients[{1, t}].end(), 1000.0f);
    f.fleet.Submit(1, t, 50);
  }
  // Done without anybody else, with the newest values.
  EXPECT_EQ(f.fleet.outcomes.size(), f.fleet.model.tables.size());
  EXPECT_TRUE(f.fleet.AllOk());
  EXPECT_NEAR(f.Grown(1), 3, 1e-5);
  EXPECT_TRUE(SameBits(f.fleet.values[{1, 0}], f.fleet.values[{0, 0}]));
  // From here on it counts again.
  f.StepOfTheOthers(1);
  f.StepOf(1, 4, 2);
  EXPECT_EQ(f.fleet.hybrids[1]->step().value(), 4u);
  f.fleet.Run();
  EXPECT_TRUE(f.fleet.AllOk());
  EXPECT_NEAR(f.Grown(0), 3 + (1 + 1 + 2 * 4) / 4.0, 1e-5);
  EXPECT_TRUE(SameBits(f.fleet.values[{1, 0}], f.fleet.values[{0, 0}]));
  EXPECT_EQ(f.fleet.hybrids[1]->steps_aside(), 3u);
}

TEST_P(HybridLatenessTest, NeverFewerThanTheMinimum) {
  for (uint64_t seed = 1; seed < 10; ++seed) {
    LateFleet f(4, 3, {1, 2}, GetParam(), seed);
    f.StepOfTheOthers(1);
    f.Pass(absl::Seconds(5));
    EXPECT_TRUE(f.fleet.outcomes.empty());
    // With one of them there are enough.
    f.StepOf(seed % 2 == 0 ? 1 : 2, 7, 1);
    f.fleet.Run();
    f.Pass(2 * kGrace);
    EXPECT_EQ(f.fleet.outcomes.size(), 3 * f.fleet.model.tables.size());
    EXPECT_NEAR(f.Grown(0), 3, 1e-5);
  }
}

TEST_P(HybridLatenessTest, WithoutARuleEverybodyIsWaitedFor) {
  LateFleet f(3, 0, {1}, GetParam(), 7);
  f.StepOfTheOthers(1);
  f.Pass(absl::Seconds(5));
  EXPECT_TRUE(f.fleet.outcomes.empty());
  f.StepOf(1, 4, 1);
  f.fleet.Run();
  EXPECT_NEAR(f.Grown(1), 2, 1e-5);
}

TEST_P(HybridLatenessTest, AProgramThatHasEndedIsWaitedFor) {
  LateFleet f(3, 2, {1}, GetParam(), 8);
  f.fleet.hybrids[1]->Close();
  f.StepOfTheOthers(1);
  f.Pass(absl::Seconds(5));
  EXPECT_TRUE(f.fleet.outcomes.empty());
}

TEST_P(HybridLatenessTest, AGradientOfNoSamplesIsNobodys) {
  LateFleet f(3, 1, {1, 2}, GetParam(), 9);
  f.StepOf(0, 1000, 0);
  f.fleet.Run();
  f.Pass(absl::Seconds(5));
  EXPECT_TRUE(f.fleet.outcomes.empty()) << "nobody has given anything";
  f.StepOf(1, 3, 2);
  f.fleet.Run();
  f.Pass(2 * kGrace);
  EXPECT_EQ(f.fleet.outcomes.size(), 2 * f.fleet.model.tables.size());
  EXPECT_NEAR(f.Grown(0), 3, 1e-5);
  EXPECT_EQ(f.fleet.hybrids[2]->steps_aside(), 1u);
}

// Tensors that are apart.
TEST(HybridLatenessOneTest, WhoSteppedAsideHasGivenNothing) {
  LateFleet f(3, 1, {1}, false, 10);
  // The first tensor of the others is enough for member 1 to step aside, with all tensors.
  for (const uint32_t rank : {0u, 2u}) {
    f.Begin(rank);
    f.Submit(rank, 0, 1, 1);
  }
  f.fleet.Run();
  f.Pass(2 * kGrace);
  EXPECT_EQ(f.fleet.hybrids[1]->steps_aside(), 1u);
  EXPECT_EQ(f.fleet.outcomes.size(), 2u);
  // No member has given the other tensors, so no member goes on without its own one.
  f.Pass(absl::Seconds(5));
  EXPECT_EQ(f.fleet.outcomes.size(), 2u);
  for (const uint32_t rank : {0u, 2u}) {
    for (const size_t t : {1, 2}) f.Submit(rank, t, rank == 0 ? 2 : 4, 1);
  }
  f.fleet.Run();
  EXPECT_EQ(f.fleet.outcomes.size(), 6u);
  EXPECT_TRUE(f.fleet.AllOk());
  EXPECT_NEAR(f.Grown(0, 1), 3, 1e-5);
  EXPECT_EQ(f.fleet.hybrids[0]->steps_aside() + f.fleet.hybrids[2]->steps_aside(), 0u);
}

TEST(HybridLatenessOneTest, ASumThatPassedSomebodyWhoSteppedAsideIsNotTheirs) {
  LateFleet f(3, 2, {1}, false, 12);
  for (const uint32_t rank : {0u, 2u}) {
    f.Begin(rank);
    f.Submit(rank, 0, 1, 1);
  }
  f.fleet.Run();
  f.Pass(2 * kGrace);
  EXPECT_EQ(f.fleet.hybrids[1]->steps_aside(), 1u);
  // Member 2 hears of the gradient of 0 in a sum of 0 and 1, who gave none.
  for (const size_t t : {1, 2}) f.Submit(0, t, 2, 1);
  f.fleet.Run();
  f.Pass(absl::Seconds(5));
  EXPECT_EQ(f.fleet.outcomes.size(), 2u);
  EXPECT_EQ(f.fleet.hybrids[2]->steps_aside(), 0u);
  for (const size_t t : {1, 2}) f.Submit(2, t, 4, 1);
  f.fleet.Run();
  EXPECT_EQ(f.fleet.outcomes.size(), 6u);
  EXPECT_NEAR(f.Grown(0, 1), 3, 1e-5);
}

TEST(HybridLatenessOneTest, AProgramThatGoesOnTakesTheStepsItSkipsWithAllTensors) {
  LateFleet f(3, 2, {1}, false, 11);
  // Step 1 of tensor 1 stays on its way, while member 1 steps aside in step 2 of tensor 0.
  f.fleet.withheld_table = 2;
  for (uint32_t rank = 0; rank < 3; ++rank) f.StepOf(rank, 1, 1);
  f.fleet.Run();
  for (const uint32_t rank : {0u, 2u}) {
    f.Begin(rank);
    for (const size_t t : {0, 2}) f.Submit(rank, t, 1, 1);
  }
  f.fleet.Run();
  f.Pass(2 * kGrace);
  EXPECT_EQ(f.fleet.hybrids[1]->steps_aside(), 1u);
  // Its program comes for step 3, and nobody is to be late any more.
  f.SetRule(0);
  f.Begin(1);
  for (const size_t t : {0, 2}) f.Submit(1, t, 1, 1);
  EXPECT_EQ(f.fleet.hybrids[1]->step().value(), 3u);
  f.fleet.withheld_table = 0;
  f.fleet.Run();
  // It never gives step 2 of tensor 1; the others have all that there is to wait for.
  f.fleet.outcomes.clear();
  for (const uint32_t rank : {0u, 2u}) f.Submit(rank, 1, 5, 1);
  f.fleet.Run();
  EXPECT_EQ(f.fleet.outcomes.size(), 2u);
  EXPECT_NEAR(f.Grown(0, 1), 1 + 5, 1e-5);
  f.Submit(1, 1, 1, 1);
  for (const uint32_t rank : {0u, 2u}) f.StepOf(rank, 1, 1);
  f.fleet.Run();
  EXPECT_TRUE(f.fleet.AllOk());
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(f.Grown(rank, 1), 7, 1e-5);
    EXPECT_NEAR(f.Grown(rank, 0), 3, 1e-5);
    EXPECT_EQ(f.fleet.hybrids[rank]->step().value(), 3u);
    EXPECT_EQ(f.fleet.hybrids[rank]->steps_aside(), rank == 1 ? 1u : 0u);
  }
}

TEST_P(HybridLatenessTest, RandomLatenessKeepsMembersTogether) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    LateFleet f(4, 2, {}, GetParam(), seed);
    Random random(seed);
    // Each program is idle, or waits for what it has submitted.
    std::vector<size_t> waiting(4, 0);
    const auto submit = [&](uint32_t rank) {
      f.fleet.hybrids[rank]->BeginStep(f.fleet.ring.now(), f.fleet.ring.outbox(rank));
      for (const size_t t : f.fleet.RandomOrder()) {
        TensorRequest request = f.fleet.RequestFor(rank, t, 1 + rank);
        std::vector<float>& gradient = f.fleet.gradients[{rank, t}];
        std::fill(gradient.begin(), gradient.end(), -1.0f);
        ++waiting[rank];
        request.done = [&waiting, rank](absl::Time, const absl::Status& status, Outbox&) {
          EXPECT_TRUE(status.ok()) << status;
          --waiting[rank];
        };
        f.fleet.hybrids[rank]->Submit(f.fleet.ring.now(), request, f.fleet.ring.outbox(rank));
      }
    };
    for (int round = 0; round < 200; ++round) {
      const auto rank = static_cast<uint32_t>(random.Below(4));
      // Member 3 is slow.
      if (waiting[rank] == 0 && (rank != 3 || random.Chance(0.1))) submit(rank);
      f.Pass(kGrace * random.Uniform());
    }
    // All catch up; then they have the same values, every step counting 1.
    for (int round = 0; round < 50; ++round) {
      for (uint32_t rank = 0; rank < 4; ++rank) {
        if (waiting[rank] == 0 && f.fleet.hybrids[rank]->step().value() < 1000) submit(rank);
      }
      f.fleet.Run();
    }
    f.Pass(absl::Seconds(1));
    EXPECT_GT(f.fleet.hybrids[3]->steps_aside(), 0u);
    for (uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(waiting[rank], 0u) << rank;
    const float steps = f.Grown(0);
    EXPECT_NEAR(steps, std::round(steps), 1e-3);
    EXPECT_GT(steps, 50);
  }
}

TEST_P(HybridLatenessTest, AProgramThatIsAwayIsWaitedFor) {
  LateFleet f(4, 3, {2}, GetParam(), 7);
  const absl::Time back = f.fleet.ring.now() + absl::Seconds(10);
  f.fleet.hybrids[2]->SetAwayUntil(back);
  f.StepOfTheOthers(1);
  f.Pass(absl::Seconds(9));
  EXPECT_TRUE(f.fleet.outcomes.empty());
  // It comes back early, and has the grace from then on.
  f.fleet.hybrids[2]->SetAwayUntil(f.fleet.ring.now());
  f.Pass(kGrace / 2);
  EXPECT_TRUE(f.fleet.outcomes.empty());
  f.StepOf(2, 5, 1);
  f.fleet.Run();
  EXPECT_EQ(f.fleet.outcomes.size(), 4 * f.fleet.model.tables.size());
  EXPECT_TRUE(f.fleet.AllOk());
  EXPECT_NEAR(f.Grown(0), 2, 1e-5) << "the mean over all four";
  EXPECT_EQ(f.fleet.hybrids[2]->steps_aside(), 0u);
}

TEST_P(HybridLatenessTest, AProgramThatIsAwayForTooLongIsLate) {
  LateFleet f(4, 3, {2}, GetParam(), 8);
  f.fleet.hybrids[2]->SetAwayUntil(f.fleet.ring.now() + absl::Seconds(10));
  f.StepOfTheOthers(1);
  f.Pass(absl::Seconds(10) + kGrace / 2);
  EXPECT_TRUE(f.fleet.outcomes.empty());
  f.Pass(kGrace);
  EXPECT_EQ(f.fleet.outcomes.size(), 3 * f.fleet.model.tables.size());
  EXPECT_TRUE(f.fleet.AllOk());
  EXPECT_EQ(f.fleet.hybrids[2]->steps_aside(), 1u);
}

}  // namespace
}  // namespace covey::worker
