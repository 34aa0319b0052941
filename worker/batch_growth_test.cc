// SPDX-License-Identifier: Apache-2.0
#include "worker/batch_growth.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

// Norms of a step with this noise scale.
GradientNorms NormsOf(double scale, uint64_t samples) {
  const auto divisor = static_cast<double>(samples);
  return {.members = 2,
          .samples = samples,
          .member_square = 1 + 2 * scale / divisor,
          .group_square = 1 + scale / divisor};
}

TEST(BatchGrowthTest, DoublesOnceTheNoiseHasBeenAboveForAWhile) {
  BatchGrowth growth({.member_batch = 8, .multiple_max = 7, .factor = 2, .steps = 5});
  const auto add = [&](double scale, int steps) {
    for (int step = 0; step < steps; ++step) {
      growth.Add(NormsOf(scale, 16 * growth.multiple()));
    }
  };
  add(100, 4);
  EXPECT_EQ(growth.multiple(), 1u);
  add(100, 1);
  EXPECT_EQ(growth.multiple(), 2u);
  add(100, 5);
  EXPECT_EQ(growth.multiple(), 4u);
  add(1e6, 50);
  EXPECT_EQ(growth.multiple(), 4u) << "8 is above the limit";
}

TEST(BatchGrowthTest, StaysWhereTheBatchIsLargeEnough) {
  BatchGrowth growth({.member_batch = 8, .multiple_max = 64, .factor = 2, .steps = 5});
  for (int step = 0; step < 100; ++step) growth.Add(NormsOf(31, 16));
  EXPECT_EQ(growth.multiple(), 1u);
  for (int step = 0; step < 500; ++step) growth.Add(NormsOf(70, 16 * growth.multiple()));
  EXPECT_EQ(growth.multiple(), 4u) << "the last doubling at 32 samples, where 70 > 2 * 32";
}

TEST(BatchGrowthTest, StepsAboveCountOnlyInARow) {
  const BatchGrowthOptions options{.member_batch = 8, .multiple_max = 64, .factor = 2, .steps = 5};
  BatchGrowth interrupted(options);
  BatchGrowth met(options);
  for (int round = 0; round < 10; ++round) {
    for (int step = 0; step < 5; ++step) {
      // A single step that is not above it.
      interrupted.Add(NormsOf(100, step == 4 ? 10000 : 16));
      // The members have met again.
      GradientNorms norms = NormsOf(100, 16);
      norms.starts_over = step == 0;
      if (step < 4) met.Add(norms);
    }
  }
  EXPECT_EQ(interrupted.multiple(), 1u);
  EXPECT_EQ(met.multiple(), 1u);
}

TEST(BatchGrowthTest, MembersThatMeetAgainAgreeOnWhatTheGroupHas) {
  const BatchGrowthOptions options{.member_batch = 8, .multiple_max = 16, .steps = 5};
  BatchGrowth old(options);
  for (int step = 0; step < 15; ++step) old.Add(NormsOf(1e6, 16));
  ASSERT_EQ(old.multiple(), 8u);
  const auto meet = [&](uint32_t members, uint64_t samples) {
    BatchGrowth survivor = old;
    BatchGrowth joined(options);
    GradientNorms norms = NormsOf(1e6, samples);
    norms.members = members;
    norms.starts_over = true;
    survivor.Add(norms);
    joined.Add(norms);
    EXPECT_EQ(survivor.multiple(), joined.multiple());
    return survivor.multiple();
  };
  EXPECT_EQ(meet(3, 64 + 64 + 64), 8u);  // A member was lost.
  EXPECT_EQ(meet(3, 64 + 8 + 8), 4u);    // Two have joined with their first batch: 27 on average.
  EXPECT_EQ(meet(3, 16 + 8 + 8), 1u);    // One has doubled a step before the others: 1.3 times.
  EXPECT_EQ(meet(2, 3), 1u);             // The data is at its end.
  EXPECT_EQ(meet(2, 1000), 16u);
}

// Softmax regression. Every step draws new examples, so the loss on held-out examples shows how
// well the members have trained. They train together, with the same decisions.
constexpr size_t kInputs = 16;
constexpr size_t kClasses = 4;
using Inputs = std::array<double, kInputs>;
using Weights = std::array<Inputs, kClasses>;

struct Example {
  Inputs inputs;
  size_t label = 0;
};

double Normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.Uniform();
  return sum;
}

std::array<double, kClasses> ProbabilitiesOf(const Weights& weights, const Inputs& inputs) {
  std::array<double, kClasses> result = {};
  double sum = 0;
  for (size_t c = 0; c < kClasses; ++c) {
    for (size_t i = 0; i < kInputs; ++i) result[c] += weights[c][i] * inputs[i];
    sum += result[c] = std::exp(result[c]);
  }
  for (double& probability : result) probability /= sum;
  return result;
}

class Problem {
 public:
  Problem() {
    Random random(7);
    for (Inputs& of_class : truth_) {
      for (double& weight : of_class) weight = Normal(random);
    }
    for (int i = 0; i < 2000; ++i) held_out_.push_back(Draw(random));
  }
  Example Draw(Random& random) const {
    Example example;
    for (double& input : example.inputs) input = Normal(random) / 2;
    double rest = random.Uniform();
    for (const double probability : ProbabilitiesOf(truth_, example.inputs)) {
      if ((rest -= probability) < 0 || example.label + 1 == kClasses) break;
      ++example.label;
    }
    return example;
  }
  double LossOf(const Weights& weights) const {
    double loss = 0;
    for (const Example& example : held_out_) {
      loss -= std::log(ProbabilitiesOf(weights, example.inputs)[example.label]);
    }
    return loss / static_cast<double>(held_out_.size());
  }

 private:
  Weights truth_;
  std::vector<Example> held_out_;
};

constexpr uint64_t kMemberBatch = 4;
constexpr uint64_t kSamples = 6400;

struct RunOptions {
  uint32_t members = 2;
  double rate = 0;
  // 0: the rate falls to 0 along a line over kSamples. Above: it stays, for so many updates.
  uint64_t constant_updates = 0;
  uint64_t multiple_max = 1;
  // Above 0: the rate is that for a batch of this many examples, and follows the batch by the rule.
  uint64_t base_batch = 0;
  // The run ends when its loss is as small; looked at every 10 updates.
  double target = 0;
  uint64_t seed = 1;
};
struct RunResult {
  double loss = 0;
  uint64_t updates = 0;
  uint64_t samples = 0;
};

RunResult Train(const Problem& problem, const RunOptions& options) {
  Random random(100 + options.seed);
  Weights weights = {};
  BatchGrowth growth({.member_batch = kMemberBatch, .multiple_max = options.multiple_max});
  RunResult result;
  const bool falls = options.constant_updates == 0;
  while (falls ? result.samples < kSamples : result.updates < options.constant_updates) {
    const uint64_t batch = kMemberBatch * growth.multiple();
    GradientNorms norms{.members = options.members, .samples = batch * options.members};
    const auto divisor = static_cast<double>(norms.samples);
    Weights mean = {};
    for (uint32_t member = 0; member < options.members; ++member) {
      Weights sum = {};
      for (uint64_t i = 0; i < batch; ++i) {
        const Example example = problem.Draw(random);
        std::array<double, kClasses> error = ProbabilitiesOf(weights, example.inputs);
        error[example.label] -= 1;
        for (size_t c = 0; c < kClasses; ++c) {
          for (size_t f = 0; f < kInputs; ++f) sum[c][f] += error[c] * example.inputs[f];
        }
      }
      for (size_t c = 0; c < kClasses; ++c) {
        for (size_t f = 0; f < kInputs; ++f) {
          norms.member_square += sum[c][f] * sum[c][f] / static_cast<double>(batch) / divisor;
          mean[c][f] += sum[c][f] / divisor;
        }
      }
    }
    for (const Inputs& of_class : mean) {
      for (const double element : of_class) norms.group_square += element * element;
    }
    growth.Add(norms);
    result.samples += norms.samples;
    double rate = options.rate;
    if (falls) rate *= 1 - static_cast<double>(result.samples) / kSamples;
    if (options.base_batch > 0) rate *= growth.noise()->RateGain(options.base_batch, norms.samples);
    for (size_t c = 0; c < kClasses; ++c) {
      for (size_t f = 0; f < kInputs; ++f) weights[c][f] -= rate * mean[c][f];
    }
    if (++result.updates % 10 == 0 && options.target > 0 &&
        problem.LossOf(weights) <= options.target) {
      break;
    }
  }
  result.loss = problem.LossOf(weights);
  return result;
}

double MeanLoss(const Problem& problem, RunOptions options) {
  double sum = 0;
  for (options.seed = 1; options.seed <= 4; ++options.seed) sum += Train(problem, options).loss;
  return sum / 4;
}

struct Tuned {
  double rate = 0;
  double loss = 1e9;
};
Tuned Tune(const Problem& problem, uint32_t members) {
  Tuned best;
  for (double rate = 0.125; rate < 10; rate *= std::sqrt(2.0)) {
    const double loss = MeanLoss(problem, {.members = members, .rate = rate});
    if (loss < best.loss) best = {.rate = rate, .loss = loss};
  }
  return best;
}

TEST(ScaleTransferTest, ARateTunedWith2WorkersDoesWith16) {
  const Problem problem;
  const Tuned with2 = Tune(problem, 2);
  const Tuned with16 = Tune(problem, 16);
  const double by_rule =
      MeanLoss(problem, {.members = 16, .rate = with2.rate, .base_batch = 2 * kMemberBatch});
  EXPECT_LT(by_rule, 1.02 * with16.loss);
  const double as_it_is = MeanLoss(problem, {.members = 16, .rate = with2.rate});
  EXPECT_GT(as_it_is, 1.05 * with16.loss);
  RecordProperty("rate_with_2", std::to_string(with2.rate));
  RecordProperty("rate_with_16", std::to_string(with16.rate));
  RecordProperty("loss_by_rule", std::to_string(by_rule));
  RecordProperty("loss_tuned", std::to_string(with16.loss));
  RecordProperty("loss_without_rule", std::to_string(as_it_is));
}

TEST(BatchGrowthTest, TakesFarFewerUpdatesToTheLossOfAFallingRate) {
  const Problem problem;
  const double rate = Tune(problem, 2).rate;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const RunResult falling = Train(problem, {.rate = rate, .seed = seed});
    const uint64_t updates_max = falling.updates * 7 / 10;
    RunOptions options{
        .rate = rate, .constant_updates = updates_max, .target = falling.loss, .seed = seed};
    const RunResult constant = Train(problem, options);
    EXPECT_GT(constant.loss, falling.loss) << seed;
    options.multiple_max = 64;
    const RunResult growing = Train(problem, options);
    EXPECT_LE(growing.loss, falling.loss) << seed;
    RecordProperty("run_" + std::to_string(seed),
                   std::to_string(growing.updates) + " updates with " +
                       std::to_string(growing.samples) +
                       " samples; falling rate: " + std::to_string(falling.updates) + " with " +
                       std::to_string(falling.samples));
  }
}

}  // namespace
}  // namespace covey::worker
