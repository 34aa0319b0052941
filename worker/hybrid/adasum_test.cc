// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/adasum.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Vector = std::vector<double>;

double DotOf(const Vector& a, const Vector& b) {
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  return product;
}

Vector Pair(const Vector& a, const Vector& b) {
  const double aa = DotOf(a, a);
  const double bb = DotOf(b, b);
  const double half = DotOf(a, b) / 2;
  Vector sum;
  for (size_t i = 0; i < a.size(); ++i) {
    sum.push_back(a[i] * (1 - (aa > 0 ? half / aa : 0)) + b[i] * (1 - (bb > 0 ? half / bb : 0)));
  }
  return sum;
}

// As the paper has it: the vectors themselves, pair by pair.
Vector Reference(std::vector<Vector> vectors) {
  while (vectors.size() > 1) {
    std::vector<Vector> next;
    for (size_t i = 0; i + 1 < vectors.size(); i += 2) {
      next.push_back(Pair(vectors[i], vectors[i + 1]));
    }
    if (vectors.size() % 2 == 1) next.push_back(vectors.back());
    vectors = next;
  }
  return vectors[0];
}

// By products and coefficients.
Vector Adasum(const std::vector<Vector>& vectors) {
  const auto members = static_cast<uint32_t>(vectors.size());
  std::vector<float> rows;
  for (const Vector& vector : vectors) rows.insert(rows.end(), vector.begin(), vector.end());
  const PartRange all{.first = 0, .count = vectors[0].size()};
  Vector products(AdasumProducts(members));
  AddProducts(rows, members, all, products);
  std::vector<float> sum(all.count);
  SumRows(rows, AdasumCoefficients(products, members), all, sum);
  return {sum.begin(), sum.end()};
}

std::vector<Vector> SomeVectors(uint32_t members, size_t elements, Random& random) {
  std::vector<Vector> vectors(members, Vector(elements));
  for (Vector& vector : vectors) {
    for (double& value : vector) value = static_cast<float>(random.Uniform() * 2 - 0.7);
  }
  return vectors;
}

void ExpectNear(const Vector& got, const Vector& wanted, double error) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], error) << i;
}

class AdasumTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, AdasumTest, testing::Range(1u, 10u));

TEST_P(AdasumTest, EqualsPairByPair) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const auto vectors = SomeVectors(GetParam(), 1 + random.Below(5000), random);
    ExpectNear(Adasum(vectors), Reference(vectors), 2e-5);
  }
}

TEST_P(AdasumTest, AddsWhatIsOrthogonal) {
  std::vector<Vector> vectors(GetParam(), Vector(20));
  Vector sum(20);
  for (size_t i = 0; i < vectors.size(); ++i) {
    vectors[i][2 * i] = 1 + static_cast<double>(i);
    vectors[i][2 * i + 1] = -3;
    for (size_t e = 0; e < sum.size(); ++e) sum[e] += vectors[i][e];
  }
  ExpectNear(Adasum(vectors), sum, 0);
}

TEST_P(AdasumTest, AveragesWhatIsEqual) {
  Random random(7);
  const std::vector<Vector> vectors(GetParam(), SomeVectors(1, 1000, random)[0]);
  ExpectNear(Adasum(vectors), vectors[0], 1e-6);
}

TEST_P(AdasumTest, AMemberWithoutAGradientCountsAsAbsent) {
  Random random(3);
  auto vectors = SomeVectors(GetParam(), 100, random);
  for (size_t absent = 0; absent < vectors.size(); absent += 2) vectors[absent].assign(100, 0);
  const Vector result = Adasum(vectors);
  ExpectNear(result, Reference(vectors), 2e-6);
}

TEST(AdasumOneTest, WhatCancelsOutLeavesTheRestAlone) {
  Random random(5);
  const auto vectors = SomeVectors(2, 1000, random);
  Vector minus;
  for (const double value : vectors[0]) minus.push_back(-value);
  ExpectNear(Adasum({vectors[0], minus, vectors[1]}), vectors[1], 1e-6);
  // What rounding leaves of the first two has a direction by chance.
  for (size_t i = 0; i < minus.size(); ++i) minus[i] += vectors[0][i] * (i % 3 == 0 ? 6e-8 : 0);
  ExpectNear(Adasum({vectors[0], minus, vectors[1]}), vectors[1], 1e-5);
}

TEST(AdasumOneTest, WhatIsNotFiniteStaysSo) {
  for (const double odd : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (size_t at = 0; at < 5; ++at) {
      std::vector<Vector> vectors = {{1, 2}, {0, 0}, {3, -1}, {1, 1}, {0, 4}};
      vectors[at][0] = odd;
      EXPECT_FALSE(std::isfinite(Adasum(vectors)[0])) << at;
    }
  }
}

// --- In a group ---

HybridOptions ByAdasum(Synchronization where = Synchronization::kCentralized) {
  return {.synchronization = where, .combine = Combine::kAdasum};
}

Model PlainSgd(proto::WireFormat format = proto::WIRE_FLOAT32) {
  Model model = GroupWithLosses::Integers();
  model.tables = {{5, 4, 7, 1, 6, 3}, {2}, {3, 1}};
  model.spec.set_gradient_format(format);
  return model;
}

float GradientOf(uint32_t rank, size_t tensor, size_t element) {
  return static_cast<float>(std::sin(1 + rank * 1.3 + static_cast<double>(tensor) +
                                     static_cast<double>(element) * (1 + rank)));
}

void StepOf(Fleet& fleet, const std::vector<uint64_t>& samples) {
  fleet.Step(samples, [](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = GradientOf(rank, tensor, i);
  });
}

std::vector<Vector> GradientsOf(const Fleet& fleet, size_t tensor,
                                const std::vector<uint64_t>& samples) {
  std::vector<Vector> gradients;
  for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) {
    Vector& gradient = gradients.emplace_back(fleet.model.ElementsOf(tensor));
    if (samples[rank] == 0) continue;
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = GradientOf(rank, tensor, i);
  }
  return gradients;
}

// Every member has values[before] minus the reference, with the same bits.
void CheckStep(Fleet& fleet,
               const std::map<std::pair<uint32_t, size_t>, std::vector<float>>& before,
               const std::vector<uint64_t>& samples, double error) {
  ASSERT_TRUE(fleet.AllOk());
  for (const auto& [key, values] : fleet.values) {
    ASSERT_TRUE(SameBits(values, fleet.values[{0, key.second}]));
    const Vector expected = Reference(GradientsOf(fleet, key.second, samples));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], before.at(key)[i] - expected[i], error) << "tensor " << key.second;
    }
  }
}

TEST_P(AdasumTest, AStepAddsUpToTheReferenceForEachTensor) {
  for (const Synchronization where :
       {Synchronization::kCentralized, Synchronization::kDistributed}) {
    for (const uint64_t bucket_bytes : {uint64_t{0}, uint64_t{1} << 20}) {
      HybridOptions options = ByAdasum(where);
      options.fusion.bucket_bytes = bucket_bytes;
      Fleet fleet(GetParam(), PlainSgd(), options, 1 + GetParam());
      fleet.PullAll();
      std::vector<uint64_t> samples;
      for (uint32_t rank = 0; rank < GetParam(); ++rank) samples.push_back(1 + 2 * rank);
      for (int step = 0; step < 2; ++step) {
        const auto before = fleet.values;
        StepOf(fleet, samples);
        CheckStep(fleet, before, samples, 3e-6);
      }
      if (where == Synchronization::kCentralized) {
        EXPECT_EQ(fleet.server.samples_of_table[2], 2u * GetParam() * GetParam());
      }
    }
  }
}

TEST(AdasumGroupTest, TheProgramGetsTheResultInPlaceOfTheMean) {
  Fleet fleet(3, PlainSgd(), ByAdasum(Synchronization::kProgram));
  fleet.PullAll();
  StepOf(fleet, {2, 0, 5});
  ASSERT_TRUE(fleet.AllOk());
  for (const auto& [key, values] : fleet.values) {
    EXPECT_EQ(fleet.mean_samples[key], 7u);
    const Vector expected = Reference(GradientsOf(fleet, key.second, {2, 0, 5}));
    ExpectNear({values.begin(), values.end()}, expected, 1e-6);
  }
}

TEST(AdasumGroupTest, FormatsRoundAndStepsMayLag) {
  const std::map<proto::WireFormat, double> errors = {{proto::WIRE_FLOAT16, 4e-3},
                                                      {proto::WIRE_BFLOAT16, 3e-2},
                                                      {proto::WIRE_INT8_BLOCK, 4e-2},
                                                      {proto::WIRE_FLOAT16_BLOCK, 4e-3},
                                                      {proto::WIRE_FLOAT8_BLOCK, 5e-1}};
  for (const auto& [format, error] : errors) {
    Fleet fleet(4, PlainSgd(format), ByAdasum());
    fleet.PullAll();
    const auto before = fleet.values;
    StepOf(fleet, {1, 1, 1, 1});
    CheckStep(fleet, before, {1, 1, 1, 1}, error);
  }
  HybridOptions options = ByAdasum();
  options.lag = 1;
  Fleet fleet(3, PlainSgd(), options);
  fleet.PullAll();
  const auto before = fleet.values;
  StepOf(fleet, {1, 2, 3});
  StepOf(fleet, {1, 2, 3});
  CheckStep(fleet, before, {1, 2, 3}, 3e-6);
}

TEST(AdasumGroupTest, IsClippedByItsOwnNorm) {
  HybridOptions options = ByAdasum();
  options.max_gradient_norm = 100;
  Fleet fleet(3, PlainSgd(), options);
  fleet.PullAll();
  const auto before = fleet.values;
  StepOf(fleet, {1, 2, 3});
  CheckStep(fleet, before, {1, 2, 3}, 3e-6);
  double squares = 0;
  for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
    const Vector expected = Reference(GradientsOf(fleet, t, {1, 2, 3}));
    squares += DotOf(expected, expected);
  }
  EXPECT_NEAR(*fleet.hybrids[2]->model().gradient_norm(), std::sqrt(squares), 1e-5);
}

TEST(AdasumGroupTest, AGradientThatIsNotFiniteIsNotHidden) {
  Fleet fleet(3, PlainSgd(), ByAdasum());
  fleet.PullAll();
  std::map<uint64_t, bool> finite;
  fleet.server.on_push = [&](const proto::PushRequest& push, const std::vector<float>& sum) {
    finite.try_emplace(push.id().table(), true);
    for (const float element : sum) finite[push.id().table()] &= std::isfinite(element);
  };
  fleet.Step({1, 1, 1}, [](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
    gradient[0] = tensor == 1 && rank == 2 ? std::nanf("") : 1;
  });
  EXPECT_EQ(finite, (std::map<uint64_t, bool>{{1, true}, {2, false}, {3, true}}));
}

TEST(AdasumGroupTest, AMemberThatTakesTheMeanIsToldSo) {
  Fleet fleet(2, PlainSgd(), ByAdasum());
  fleet.PullAll();
  const std::vector<TableId> tables = {TableId(1), TableId(2), TableId(3)};
  ASSERT_TRUE(fleet.hybrids[1]->SetTables(tables, HybridOptions(), kPatience).ok());
  StepOf(fleet, {1, 1});
  EXPECT_FALSE(fleet.AllOk());
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(fleet.ring.communicator(rank).failure().message(),
                HasSubstr("all members must start the same collectives"));
  }
}

// --- Members that die ---

// All gradients have one direction, so that numbers say who has given: the mean of two in each
// pair.
double MeanOfPairs(std::vector<double> lengths) {
  std::vector<Vector> vectors;
  for (const double length : lengths) vectors.push_back({length});
  return Reference(vectors)[0];
}

GroupWithLosses::Options LossesOf(const Case& with, uint64_t seed) {
  GroupWithLosses::Options options = with.OptionsOf(seed);
  options.hybrid.combine = Combine::kAdasum;
  return options;
}

// Each push is of a set of members, whose gradients are those of one group.
void CheckPushes(GroupWithLosses& f, uint32_t workers) {
  f.fleet.server.on_push = [&f, workers](const proto::PushRequest& push,
                                         const std::vector<float>& sum) {
    for (uint32_t set = 1; set < 1u << workers; ++set) {
      uint64_t samples = 0;
      std::vector<double> lengths;
      for (uint32_t rank = 0; rank < workers; ++rank) {
        if ((set >> rank & 1) == 0) continue;
        samples += 1 + rank;
        lengths.push_back(-1.0 - rank);
      }
      const double expected = MeanOfPairs(lengths) * static_cast<double>(samples);
      if (samples == push.samples() && std::all_of(sum.begin(), sum.end(), [&](float element) {
            return std::abs(element - expected) < 1e-5 * std::abs(expected);
          })) {
        return;
      }
    }
    f.violations.push_back(absl::StrCat(sum[0], " for ", push.samples(), " samples"));
  };
}

class AdasumRecoveryTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, AdasumRecoveryTest,
                         testing::Values(Case{}, Case{.fused = true}, Case{.lag = 1}));

TEST_P(AdasumRecoveryTest, AMemberMayDieAfterAnyMessageOfAStep) {
  for (uint32_t victim = 0; victim < 3; ++victim) {
    bool over = false;
    for (uint64_t messages = 0; !over; ++messages) {
      GroupWithLosses f(3, LossesOf(GetParam(), 1 + messages));
      CheckPushes(f, 3);
      f.Step();
      f.CheckAllWell(1);
      over = f.StepWithDeath(victim, messages);
      f.CheckAllWell(2);
      f.CheckUpdates(2);
      f.Step();
      f.CheckAllWell(3);
      f.CheckUpdates(3);
      ASSERT_THAT(f.violations, IsEmpty()) << "member " << victim << " after " << messages;
    }
  }
}

TEST_P(AdasumRecoveryTest, MembersDieOneAfterTheOtherUntilOneIsLeft) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    GroupWithLosses f(5, LossesOf(GetParam(), seed));
    CheckPushes(f, 5);
    const uint64_t step = f.StepUntilOneIsLeft(random);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
  }
}

TEST(AdasumLatenessTest, ALateMemberIsLeftOut) {
  GroupWithLosses f(3, LossesOf(Case{}, 1));
  f.LetGoOnWith(2);
  f.ShowAll();
  f.Step();
  for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
  f.fleet.Run();
  f.fleet.ring.Pass(absl::Seconds(1));
  f.fleet.Run();
  EXPECT_EQ(f.fleet.hybrids[2]->steps_aside(), 1u);
  EXPECT_TRUE(f.Idle(0));
  const std::vector<float>& values = f.fleet.values[{0, 2}];
  // Steps of all, and of the first two.
  const double change = MeanOfPairs({1, 2, 3}) + MeanOfPairs({1, 2});
  EXPECT_NEAR(values[0], Model::FirstValue(2, 0) + change, 1e-5);
  f.fleet.End();
}

}  // namespace
}  // namespace covey::worker
