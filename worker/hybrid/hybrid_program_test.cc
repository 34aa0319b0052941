// SPDX-License-Identifier: Apache-2.0

// A group that gives its program the mean gradient of each step (Synchronization::kProgram).

#include <cmath>
#include <string>
#include <vector>

#include "common/base/planted_bug_switch.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/mean_fixture.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

HybridOptions ProgramOptions(HybridOptions options = {}) {
  options.synchronization = Synchronization::kProgram;
  return options;
}

// The gradient of one member in one step: integers, so that sums are exact in any order.
float GradientOf(uint32_t rank, size_t tensor, size_t element, uint64_t step) {
  return static_cast<float>((rank + 1) * (element % 5 + step) + tensor);
}

class ProgramMeanTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, ProgramMeanTest, testing::Range(1u, 5u));

TEST_P(ProgramMeanTest, ValuesAreTheMeanOverTheSamplesOfAllMembers) {
  for (const uint64_t bucket_bytes : {0u, 1u << 20}) {
    Fleet fleet(GetParam(), {}, ProgramOptions({.fusion = {.bucket_bytes = bucket_bytes}}));
    fleet.PullAll();
    EXPECT_EQ((fleet.values[{0, 0}][3]), Model::FirstValue(0, 3));
    for (uint64_t step = 1; step <= 4; ++step) {
      std::vector<uint64_t> samples;
      float all = 0;
      for (uint32_t rank = 0; rank < GetParam(); ++rank) {
        samples.push_back(rank == 1 ? 0 : 1 + rank + step);
        all += static_cast<float>(samples.back());
      }
      fleet.Step(samples, [&](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
        for (size_t i = 0; i < gradient.size(); ++i) {
          gradient[i] = GradientOf(rank, tensor, i, step);
        }
      });
      ASSERT_TRUE(fleet.AllOk());
      for (const auto& [key, values] : fleet.values) {
        EXPECT_EQ(fleet.mean_samples[key], static_cast<uint64_t>(all));
        for (size_t i = 0; i < values.size(); ++i) {
          float sum = 0;
          for (uint32_t rank = 0; rank < GetParam(); ++rank) {
            sum += static_cast<float>(samples[rank]) * GradientOf(rank, key.second, i, step);
          }
          EXPECT_EQ(values[i], sum / all) << "member " << key.first << " step " << step;
        }
      }
    }
    EXPECT_EQ(fleet.server.push_bytes, 0u);
  }
}

TEST_P(ProgramMeanTest, AStepWithoutExamplesGivesZeros) {
  Fleet fleet(GetParam(), {}, ProgramOptions());
  fleet.PullAll();
  const auto ones = [](uint32_t, size_t, std::vector<float>& gradient) {
    std::fill(gradient.begin(), gradient.end(), 1.0f);
  };
  fleet.Step(std::vector<uint64_t>(GetParam(), 2), ones);
  for (const auto& [key, values] : fleet.values) EXPECT_THAT(values, Each(1.0f));
  fleet.Step(std::vector<uint64_t>(GetParam(), 0), ones);
  for (const auto& [key, values] : fleet.values) {
    EXPECT_THAT(values, Each(0.0f));
    EXPECT_EQ(fleet.mean_samples[key], 0u);
  }
  EXPECT_TRUE(fleet.AllOk());
}

TEST_P(ProgramMeanTest, GradientsMayLieWhereTheMeanGoes) {
  Fleet fleet(GetParam(), {}, ProgramOptions());
  fleet.PullAll();
  for (uint32_t rank = 0; rank < GetParam(); ++rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
    for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
      std::vector<float>& values = fleet.values[{rank, t}];
      std::fill(values.begin(), values.end(), static_cast<float>(1 + rank));
      TensorRequest request = fleet.RequestFor(rank, t, 1);
      request.gradient = values;
      fleet.hybrids[rank]->Submit(fleet.ring.now(), std::move(request), fleet.ring.outbox(rank));
    }
  }
  fleet.Run();
  for (const auto& [key, values] : fleet.values) {
    EXPECT_THAT(values, Each(static_cast<float>(GetParam() + 1) / 2));
  }
}

TEST(HybridProgramTest, EncodedMeansAreTheSameBitsOnAllMembers) {
  for (const auto format : {proto::WIRE_FLOAT16, proto::WIRE_BFLOAT16, proto::WIRE_INT8_BLOCK,
                            proto::WIRE_FLOAT16_BLOCK, proto::WIRE_FLOAT8_BLOCK}) {
    Model model;
    model.spec.set_gradient_format(format);
    Fleet fleet(3, model, ProgramOptions());
    fleet.PullAll();
    // The encoder adds the rounding error of one step to the next, so the sum over many steps is
    // close to the exact one.
    double sum = 0;
    for (uint64_t step = 1; step <= 20; ++step) {
      fleet.Step({1, 2, 3}, [](uint32_t rank, size_t, std::vector<float>& gradient) {
        for (size_t i = 0; i < gradient.size(); ++i) {
          gradient[i] = 0.37f * static_cast<float>(rank + 1) + 1.3f * static_cast<float>(i);
        }
      });
      for (const auto& [key, values] : fleet.values) {
        EXPECT_TRUE(SameBits(values, fleet.values.at({0, key.second})));
      }
      sum += fleet.values[{0, 0}][1];
    }
    EXPECT_NEAR(sum / 20, 0.37 * 14 / 6 + 1.3, 0.02);
    EXPECT_TRUE(fleet.AllOk());
  }
}

TEST(HybridProgramTest, MeansTravelBackInTheFormatOfValues) {
  Model model;
  model.spec.set_value_format(proto::WIRE_BFLOAT16);
  Fleet fleet(3, model, ProgramOptions());
  fleet.PullAll();
  for (const auto& [key, values] : fleet.values) {
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], Model::FirstValue(key.second, i)) << "the program's only copy";
    }
  }
  fleet.Step({1, 1, 1}, [](uint32_t rank, size_t, std::vector<float>& gradient) {
    std::fill(gradient.begin(), gradient.end(), 1 + static_cast<float>(rank) / 256);
  });
  EXPECT_TRUE(fleet.AllOk());
  // 1 + 1 / 256 lies between two numbers of 8 bits; the even one is 1.
  for (const auto& [key, values] : fleet.values) EXPECT_THAT(values, Each(1.0f));
}

TEST(HybridProgramTest, MeansAreClippedByTheGroupsNorm) {
  Fleet fleet(3, {}, ProgramOptions({.max_gradient_norm = 1.5}));
  fleet.PullAll();
  fleet.Step({1, 2, 3}, [](uint32_t rank, size_t, std::vector<float>& gradient) {
    std::fill(gradient.begin(), gradient.end(), static_cast<float>(rank + 1));
  });
  double square = 0;
  for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
    for (const float element : fleet.values[{2, t}]) square += element * element;
  }
  EXPECT_NEAR(std::sqrt(square), 1.5, 1e-5);
}

TEST(HybridProgramTest, NonFiniteMeansFailTheGroupUnlessTheTablesAcceptThem) {
  for (const bool accepted : {false, true}) {
    Model model;
    if (accepted) model.spec.set_non_finite(proto::ACCEPT);
    Fleet fleet(2, model, ProgramOptions());
    fleet.PullAll();
    fleet.Step({1, 1}, [](uint32_t rank, size_t, std::vector<float>& gradient) {
      std::fill(gradient.begin(), gradient.end(), rank == 0 ? INFINITY : 1.0f);
    });
    EXPECT_EQ(fleet.AllOk(), accepted);
    if (accepted) {
      EXPECT_THAT((fleet.values[{1, 1}]), Each(INFINITY));
    }
    for (const uint32_t rank : {0u, 1u}) {
      const absl::Status& failure = fleet.ring.communicator(rank).failure();
      EXPECT_EQ(failure.ok(), accepted);
      if (!accepted) {
        EXPECT_THAT(failure.message(), HasSubstr("NaN or infinity"));
      }
    }
  }
}

// True when the step was over before the member died.
bool LetOneDie(const Case& with, uint32_t victim, uint64_t messages,
               std::vector<std::string>& violations) {
  MeanGroup f(3, MeanOptions(with, 1 + messages));
  f.Step();
  f.CheckMeans(1);
  const bool over = f.StepWithDeath(victim, messages);
  f.CheckMeans(2);
  f.Step();
  f.CheckMeans(3);
  violations = f.violations;
  return over;
}

class ProgramRecoveryTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, ProgramRecoveryTest,
                         testing::Values(Case{}, Case{.fused = true},
                                         Case{.algorithm = Algorithm::kDirect},
                                         Case{.algorithm = Algorithm::kTree},
                                         Case{.algorithm = Algorithm::kHalvingDoubling},
                                         Case{.algorithm = Algorithm::kHierarchical}));

TEST_P(ProgramRecoveryTest, AMemberMayDieAfterAnyMessageOfAStep) {
  for (uint32_t victim = 0; victim < 3; ++victim) {
    bool over = false;
    for (uint64_t messages = 0; !over; ++messages) {
      std::vector<std::string> violations;
      over = LetOneDie(GetParam(), victim, messages, violations);
      ASSERT_THAT(violations, IsEmpty()) << "member " << victim << " after " << messages;
    }
  }
}

// Also those that have a mean and are about to give it to the others.
TEST_P(ProgramRecoveryTest, MembersDieOneAfterTheOtherUntilOneIsLeft) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    MeanGroup f(5, MeanOptions(GetParam(), seed));
    uint64_t step = 0;
    while (f.members().size() > 1) {
      f.StepWithDeaths(random, 3);
      ++step;
      f.CheckMeans(step);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
    f.Step();
    f.CheckMeans(step + 1);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

// Those that are ahead begin the next step before the others have this one's mean.
TEST_P(ProgramRecoveryTest, MembersGoOnWhileOthersLackTheMean) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    MeanGroup f(4, MeanOptions(GetParam(), seed));
    f.Begin();
    uint64_t begun = 1;
    for (uint64_t rounds = 20; rounds > 0; --rounds) {
      f.fleet.RunMessages(random.Below(12));
      for (const uint32_t rank : f.members()) {
        if (f.Idle(rank) && f.fleet.hybrids[rank]->step().value() < 2) {
          f.Begin(rank);
          begun = 2;
        }
      }
    }
    f.Kill(static_cast<uint32_t>(random.Below(4)));
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.RunMessages(random.Below(40));
    f.Kill(f.members()[random.Below(3)]);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    for (const uint32_t rank : f.members()) {
      if (f.fleet.hybrids[rank]->step().value() < begun) f.Begin(rank);
    }
    f.fleet.Run();
    f.CheckMeans(begun);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

// Those of the program's first model, or of its second.
TEST_P(ProgramRecoveryTest, AMemberDiesWhileTheFirstValuesAreRead) {
  for (uint64_t messages = 0; messages < 120; ++messages) {
    const uint64_t steps = messages % 2;
    MeanGroup f(3, MeanOptions(GetParam(), 1 + messages));
    if (steps > 0) {
      f.Step();
      for (const uint32_t rank : {0u, 1u, 2u}) f.fleet.SetTables(rank);
    }
    for (const uint32_t rank : {0u, 1u, 2u}) f.Pull(rank);
    f.fleet.RunMessages(messages / 2);
    f.Kill(1);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(steps);
    EXPECT_EQ((f.fleet.values[{2, 0}][3]), Model::FirstValue(0, 3));
    f.Step();
    f.CheckMeans(steps + 1);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
  }
}

TEST_P(ProgramRecoveryTest, MessagesMayBeLost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    MeanGroup f(3, MeanOptions(GetParam(), seed));
    f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message&) { return !random.Chance(0.01); });
    for (uint64_t step = 1; step <= 6; ++step) {
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

TEST_P(ProgramRecoveryTest, AMemberThatDrainsIsLetGoBetweenTwoSteps) {
  MeanGroup f(3, MeanOptions(GetParam(), 1));
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
  f.Step();
  f.CheckMeans(3);
  EXPECT_THAT(f.violations, IsEmpty());
}

class PlantedMeanTest : public testing::Test {
 protected:
  ~PlantedMeanTest() override { PlantBug(PlantedBug::kNone); }
};

TEST_F(PlantedMeanTest, AMeanThatIsNotGivenIsFound) {
  PlantBug(PlantedBug::kMeanNotGiven);
  std::vector<std::string> violations;
  for (uint64_t messages = 0; messages < 60; ++messages) {
    std::vector<std::string> found;
    LetOneDie({}, 2, messages, found);
    violations.insert(violations.end(), found.begin(), found.end());
  }
  EXPECT_THAT(violations, Not(IsEmpty()));
}

TEST(HybridProgramTest, ClippedStepsAreDoneAgainByTheSameNorm) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    GroupWithLosses::Options options = MeanOptions({.fused = seed % 2 == 0}, seed);
    options.hybrid.max_gradient_norm = 2;
    GroupWithLosses f(4, options);
    f.Step();
    f.Begin();
    f.fleet.RunMessages(random.Below(150));
    f.Kill(static_cast<uint32_t>(random.Below(4)));
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    f.Step();
    f.CheckAllWell(3);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST(HybridProgramTest, ALateMemberIsWaitedFor) {
  MeanGroup f(3, MeanOptions({}, 1));
  f.LetGoOnWith(2);
  f.ShowAll();
  f.Step();
  for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
  f.fleet.Run();
  f.fleet.ring.Pass(absl::Seconds(1));
  f.fleet.Run();
  EXPECT_FALSE(f.Idle(0));
  EXPECT_EQ(f.fleet.hybrids[2]->steps_aside(), 0u);
  f.Begin(2);
  f.fleet.Run();
  f.CheckMeans(2);
  EXPECT_THAT(f.violations, IsEmpty());
}

TEST(HybridProgramTest, ARunningGroupTakesInNobody) {
  for (const bool running : {false, true}) {
    GroupWithLosses::Options options = MeanOptions({}, 1);
    options.members = {0, 1};
    MeanGroup f(3, options);
    if (running) f.Step();
    f.Plan({0, 1, 2}, false);
    f.ShowAll();
    if (running) {
      for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
    }
    f.fleet.Run();
    if (!running) continue;  // There is no step yet after which it could join.
    ASSERT_TRUE(f.fleet.ring.communicator(2).ready());
    const absl::Status refused =
        f.fleet.hybrids[2]->SetTables(std::vector<TableId>{TableId(1)}, options.hybrid, kPatience);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(refused.message(), HasSubstr("has finished step 2"));
    // It goes, and the others go on.
    for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
    f.fleet.Run();
    f.Kill(2);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckMeans(3);
    EXPECT_THAT(f.violations, IsEmpty());
  }
}

}  // namespace
}  // namespace covey::worker
