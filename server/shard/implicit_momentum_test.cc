// SPDX-License-Identifier: Apache-2.0

// The effect of asynchrony on training, and of the governor on asynchrony: groups run at their own
// pace, in virtual time, against a shard. The law and the equations are in
// common/contract/momentum_governor.h.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/contract/momentum_governor.h"
#include "gtest/gtest.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kBuffered{.kind = Contract::Kind::kBuffered};

constexpr ShardId kShard{TableId(kTestTable), ShardIndex(0)};

enum class Pace { kMemoryless, kRegular };

// f(x) = sum over i of curvature_i * x_i^2 / 2, with noisy gradients.
struct Problem {
  std::vector<double> curvatures;
  double noise = 0;  // standard deviation of one group's gradient, per element
  double rate = 0;
  double momentum = 0;
  bool governed = false;

  double Loss(const std::vector<float>& x) const {
    double loss = 0;
    for (size_t i = 0; i < x.size(); ++i) loss += curvatures[i] * x[i] * x[i] / 2;
    return loss;
  }
};

// Curvatures from 1 down to 1 / condition.
Problem IllConditioned(double condition, double rate, double momentum) {
  constexpr int kElements = 20;
  Problem problem{.noise = 0.05, .rate = rate, .momentum = momentum};
  for (int i = 0; i < kElements; ++i) {
    problem.curvatures.push_back(std::pow(condition, -i / (kElements - 1.0)));
  }
  return problem;
}

// One shard, and groups of one member that pull, compute and push without end, each as soon as its
// contract allows. A step takes 1 on average, and so does a round of all groups; group 1 may be
// slower.
class Job {
 public:
  Job(const Problem& problem, const Contract& contract, uint32_t groups, Pace pace, uint64_t seed,
      double slowness = 1)
      : problem_(problem),
        pace_(pace),
        slowness_(slowness),
        random_(seed),
        job_(Spec(problem, contract, groups)),
        driver_(job_),
        members_(groups + 1) {
    for (uint32_t group = 1; group <= groups; ++group) {
      members_[group].values = driver_.Values();
      // Regular groups are evenly spaced.
      const double first =
          pace == Pace::kMemoryless ? Duration(group) : static_cast<double>(group) / groups;
      pushes_.push({first, group});
    }
  }

  // The next push. False when the values have diverged.
  bool Step() {
    const auto [time, group] = pushes_.top();
    pushes_.pop();
    time_ = time;
    Member& member = members_[group];
    std::vector<float> gradient = member.values;
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = static_cast<float>(problem_.curvatures[i] * gradient[i] + Noise());
    }
    const uint64_t step = ++member.step;
    Message push = ShardDriver::WithValues(driver_.GroupPush(group, step, gradient), step);
    push.envelope.mutable_push_request()->set_base_version(member.version);
    // No reply while the contract makes the group wait; then the replies to all waiting groups.
    for (const Message& reply : driver_.Deliver(push)) Answered(reply);
    return problem_.Loss(newest_) < 1e9;  // also false for NaN
  }

  void SwitchTo(const Contract& contract) {
    *job_.view.mutable_tables(0)->mutable_contract() = ContractToProto(contract);
    job_.view.set_epoch(job_.view.epoch() + 1);
    driver_.AdoptView(job_);
  }

  double time() const { return time_; }
  const std::vector<float>& newest() const { return newest_; }
  double loss() const { return problem_.Loss(newest_); }
  double first_loss() const {
    return problem_.Loss(std::vector<float>(problem_.curvatures.size(), 1));
  }
  proto::TableAsynchrony Report() { return driver_.actor().FindShard(kShard)->ReportAsynchrony(); }

 private:
  struct Member {
    std::vector<float> values;
    uint64_t version = 0;
    uint64_t step = 0;
  };

  static TestJob Spec(const Problem& problem, const Contract& contract, uint32_t groups) {
    TestJob job(contract, groups, problem.curvatures.size());
    proto::TableSpec& spec = job.spec();
    spec.mutable_learning_rate()->set_base(problem.rate);
    spec.mutable_initializer()->set_kind(proto::Initializer::CONSTANT);
    spec.mutable_initializer()->set_a(1);
    if (problem.momentum > 0 || problem.governed) {
      spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
      spec.mutable_optimizer()->set_momentum(problem.momentum);
      spec.mutable_asynchrony()->set_automatic_momentum(problem.governed);
    }
    return job;
  }

  void Answered(const Message& reply) {
    ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
    const uint32_t group = static_cast<uint32_t>(reply.envelope.push_reply().id().producer());
    newest_ = ShardDriver::ValuesIn(reply);
    members_[group].values = newest_;
    members_[group].version = reply.envelope.push_reply().state().version();
    pushes_.push({time_ + Duration(group), group});
  }

  double Duration(uint32_t group) {
    const double mean = group == 1 ? slowness_ : 1;
    return mean * (pace_ == Pace::kMemoryless ? -std::log(1 - random_.Uniform())
                                              : 1 + 0.001 * (random_.Uniform() - 0.5));
  }
  // Approximately normal: the sum of twelve uniform numbers.
  double Noise() {
    if (problem_.noise == 0) return 0;
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random_.Uniform();
    return sum * problem_.noise;
  }

  const Problem problem_;
  const Pace pace_;
  const double slowness_;
  Random random_;
  TestJob job_;
  ShardDriver driver_;
  std::vector<Member> members_;  // by group, from 1
  using Push = std::pair<double, uint32_t>;
  std::priority_queue<Push, std::vector<Push>, std::greater<Push>> pushes_;
  double time_ = 0;
  std::vector<float> newest_ = std::vector<float>(problem_.curvatures.size(), 1);
};

// The mean trajectory of one element over many jobs.
std::vector<double> MeanTrajectory(uint32_t groups, Pace pace, double rate) {
  constexpr int kJobs = 400;
  const int updates = 8 * static_cast<int>(groups);
  const Problem problem{.curvatures = {1}, .rate = rate};
  std::vector<double> mean(updates + 1, 0);
  mean[0] = 1;
  for (int seed = 0; seed < kJobs; ++seed) {
    Job job(problem, kAsync, groups, pace, seed);
    for (int update = 1; update <= updates; ++update) {
      EXPECT_TRUE(job.Step());
      mean[update] += job.newest()[0] / kJobs;
    }
  }
  return mean;
}

// Least squares for v(t+1) = mu * v(t) + b * gradient(t), where v(t) = x(t) - x(t-1) and the
// gradient at x is x.
double FitMomentum(const std::vector<double>& x) {
  double vv = 0, vg = 0, gg = 0, vy = 0, gy = 0;
  for (size_t t = 1; t + 1 < x.size(); ++t) {
    const double v = x[t] - x[t - 1], g = x[t], y = x[t + 1] - x[t];
    vv += v * v;
    vg += v * g;
    gg += g * g;
    vy += v * y;
    gy += g * y;
  }
  return (vy * gg - gy * vg) / (vv * gg - vg * vg);
}

// The largest distance of the fitted momentum from 1 - 1/G, over small and moderate rates.
double DistanceFromLaw(uint32_t groups, Pace pace) {
  double distance = 0;
  for (const double rate : {0.02, 0.15}) {
    const double fitted = FitMomentum(MeanTrajectory(groups, pace, rate));
    testing::Test::RecordProperty(absl::StrCat("fitted_at_", rate), absl::StrCat(fitted));
    distance = std::max(distance, std::abs(fitted - (1 - 1.0 / groups)));
  }
  return distance;
}

class ImplicitMomentumTest : public ::testing::TestWithParam<uint32_t> {};

// Mitliagkas et al. 2016.
TEST_P(ImplicitMomentumTest, IsOneMinusOneOverGroupsWhenStepTimesAreMemoryless) {
  EXPECT_LE(DistanceFromLaw(GetParam(), Pace::kMemoryless), 0.05);
}

// Negative control: the same mean staleness, but the law does not hold.
TEST_P(ImplicitMomentumTest, IsSomethingElseWhenStepTimesAreRegular) {
  EXPECT_GT(DistanceFromLaw(GetParam(), Pace::kRegular), 0.06);
}

INSTANTIATE_TEST_SUITE_P(Groups, ImplicitMomentumTest, ::testing::Values(4, 8, 16));

struct Outcome {
  std::optional<double> rounds;  // to 1 % of the first loss
  double floor = 0;              // mean loss of the last half, as part of the first
};

Outcome Train(const Problem& problem, const Contract& contract, uint32_t groups, Pace pace,
              double rounds, double slowness = 1) {
  Job job(problem, contract, groups, pace, 11, slowness);
  Outcome outcome;
  uint64_t losses = 0;
  while (job.time() < rounds) {
    if (!job.Step()) return {};
    if (!outcome.rounds && job.loss() < 0.01 * job.first_loss()) outcome.rounds = job.time();
    if (job.time() > rounds / 2) {
      ++losses;
      outcome.floor += (job.loss() / job.first_loss() - outcome.floor) / losses;
    }
  }
  return outcome;
}

struct Settings {
  double rate;
  double momentum;
};

// The settings of a synchronous run, with any number of groups, memoryless or regular.
TEST(Governor, MakesASynchronousRunOfAnAsynchronousOne) {
  for (const Settings settings : {Settings{0.3, 0}, {0.1, 0.5}, {0.1, 0.7}, {0.03, 0.9}}) {
    Problem problem = IllConditioned(100, settings.rate, settings.momentum);
    for (const uint32_t groups : {1, 2, 4, 8}) {
      const Outcome bsp = Train(problem, kBsp, groups, Pace::kRegular, 400);
      ASSERT_TRUE(bsp.rounds.has_value());
      for (const Contract& contract : {kAsync, kBuffered}) {
        for (const Pace pace : {Pace::kMemoryless, Pace::kRegular}) {
          SCOPED_TRACE(testing::Message()
                       << "rate " << settings.rate << " momentum " << settings.momentum
                       << " groups " << groups << " " << ContractName(contract)
                       << (pace == Pace::kRegular ? " regular" : " memoryless"));
          problem.governed = true;
          const Outcome governed = Train(problem, contract, groups, pace, 400);
          problem.governed = false;
          EXPECT_TRUE(governed.rounds.has_value());
          EXPECT_NEAR(governed.rounds.value_or(0) / *bsp.rounds, 1, 0.2);
          EXPECT_NEAR(governed.floor / bsp.floor, 1, 0.35);
        }
      }
    }
  }
}

// Negative control: without the governor.
TEST(Governor, IsWhatMakesMomentumBearableForEightGroups) {
  Problem problem = IllConditioned(100, 0.1, 0.9);
  EXPECT_TRUE(Train(problem, kBsp, 8, Pace::kRegular, 400).rounds.has_value());
  EXPECT_FALSE(Train(problem, kAsync, 8, Pace::kMemoryless, 400).rounds.has_value());
  EXPECT_FALSE(Train(problem, kAsync, 8, Pace::kRegular, 400).rounds.has_value());
  problem.governed = true;
  EXPECT_TRUE(Train(problem, kAsync, 8, Pace::kMemoryless, 400).rounds.has_value());
  EXPECT_TRUE(Train(problem, kAsync, 8, Pace::kRegular, 400).rounds.has_value());
}

// With one group four times as slow, a synchronous run takes four times as long, while buffered and
// governed runs take little longer; apply-on-arrival with the same settings misses the target.
TEST(Governor, KeepsGoingBesideASlowGroup) {
  for (const uint32_t groups : {4, 8}) {
    Problem problem = IllConditioned(100, 0.1, 0.9);
    const Outcome bsp = Train(problem, kBsp, groups, Pace::kRegular, 1000, 4);
    ASSERT_TRUE(bsp.rounds.has_value());
    for (const Pace pace : {Pace::kMemoryless, Pace::kRegular}) {
      problem.governed = false;
      EXPECT_FALSE(Train(problem, kAsync, groups, pace, 1000, 4).rounds.has_value());
      const Outcome buffered = Train(problem, kBuffered, groups, pace, 1000, 4);
      EXPECT_LE(buffered.rounds.value_or(1000), 0.8 * *bsp.rounds);
      problem.governed = true;
      for (const Contract& contract : {kAsync, kBuffered}) {
        const Outcome governed = Train(problem, contract, groups, pace, 1000, 4);
        EXPECT_LE(governed.rounds.value_or(1000), 0.8 * *bsp.rounds);
      }
    }
  }
}

// Explicit momentum is swept for each number of groups that push on arrival, with rates from small
// to large, and the best is reported.
TEST(TimeToLoss, MomentumIsTunedWithTheNumberOfGroups) {
  constexpr double kNever = 1e9;
  constexpr double kMomenta[] = {0, 0.3, 0.5, 0.7, 0.9};
  constexpr double kRates[] = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.4};
  std::map<uint32_t, double> best_momentum, best_rounds, rounds_with_most;
  for (const uint32_t groups : {1, 2, 4, 8}) {
    best_rounds[groups] = rounds_with_most[groups] = kNever;
    for (const double momentum : kMomenta) {
      for (const double rate : kRates) {
        const Problem problem = IllConditioned(100, rate, momentum);
        const double rounds =
            Train(problem, kAsync, groups, Pace::kMemoryless, 200).rounds.value_or(kNever);
        if (momentum == 0.9) rounds_with_most[groups] = std::min(rounds_with_most[groups], rounds);
        if (rounds >= best_rounds[groups]) continue;
        best_rounds[groups] = rounds;
        best_momentum[groups] = momentum;
      }
    }
    RecordProperty(absl::StrCat("best_for_", groups, "_groups"),
                   absl::StrCat("momentum ", best_momentum[groups], ": ", best_rounds[groups],
                                " rounds; with 0.9: ", rounds_with_most[groups]));
    EXPECT_LT(best_rounds[groups], kNever);
  }
  for (const uint32_t groups : {4, 8}) {
    EXPECT_LT(best_momentum[groups], best_momentum[1]);
    EXPECT_GT(rounds_with_most[groups], 1.5 * best_rounds[groups]);
  }
  EXPECT_FALSE(Contract().AppliesOnArrival());
}

TEST(Governor, GivesUpWhenAsynchronyAloneIsTooMuchAndTheBufferTakesOver) {
  Problem problem = IllConditioned(100, 0.1, 0.5);
  problem.governed = true;
  Job job(problem, kAsync, 16, Pace::kMemoryless, 3);
  std::optional<ContractChange> change;
  while (!change && job.time() < 200) {
    ASSERT_TRUE(job.Step());
    const std::vector<proto::TableAsynchrony> reports = {job.Report()};
    change = FallBackToBuffered(kAsync, reports);
  }
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->contract, kBuffered);
  EXPECT_EQ(job.Report().explicit_momentum(), 0);

  job.SwitchTo(change->contract);
  const double switched_at = job.time();
  while (job.time() < switched_at + 300) ASSERT_TRUE(job.Step());
  EXPECT_LT(job.loss(), 0.01 * job.first_loss());
  // At most a round late, instead of fifteen updates.
  EXPECT_LT(job.Report().staleness(), 1.5);
  EXPECT_EQ(job.Report().updates_above_target(), 0u);
}

}  // namespace
}  // namespace covey::server
