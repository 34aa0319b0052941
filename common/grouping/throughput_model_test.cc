// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/throughput_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

std::vector<uint32_t> Everybody(const ThroughputModel& throughput) {
  std::vector<uint32_t> members(throughput.size());
  std::iota(members.begin(), members.end(), 0);
  return members;
}

ThroughputModel::Terms RateAll(std::vector<PlannedWorker> workers,
                               const ThroughputParameters& model) {
  const ThroughputModel throughput(std::move(workers), model);
  return throughput.Rate(Everybody(throughput));
}

std::vector<PlannedWorker> Workers(size_t count, double speed, const char* labels = "z/r") {
  std::vector<PlannedWorker> workers;
  for (size_t i = 0; i < count; ++i) {
    workers.push_back({.node = NodeId(i + 10),
                       .rank = static_cast<uint32_t>(i),
                       .labels = labels,
                       .speed = speed});
  }
  return workers;
}

double Normal(Random& random) {
  return std::sqrt(-2 * std::log(1 - random.Uniform())) * std::cos(2 * M_PI * random.Uniform());
}

// Mean of the slowest member's time, by simulation.
double SlowestByTrial(const std::vector<PlannedWorker>& workers,
                      const ThroughputParameters& model) {
  Random random(5);
  constexpr int kSteps = 4000;
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    double slowest = 0;
    for (const PlannedWorker& worker : workers) {
      const double hiccup = random.Chance(model.hiccup_chance) ? model.hiccup_factor : 1;
      slowest = std::max(slowest, model.samples_per_step / worker.speed * hiccup *
                                      std::exp(model.noise_sigma * Normal(random)));
    }
    sum += slowest;
  }
  return sum / kSteps;
}

TEST(GroupRateTest, SharesThatFollowSpeedAddTheSpeedsUp) {
  std::vector<PlannedWorker> workers = Workers(4, 100);
  workers[3].speed = 20;
  ThroughputParameters model{.samples_per_step = 10, .noise_sigma = 0};
  EXPECT_NEAR(RateAll(workers, model).compute_seconds, 0.5, 1e-9);
  model.shares_follow_speed = true;
  EXPECT_NEAR(4 * 10 / RateAll(workers, model).compute_seconds, 320, 1e-6);
  // A tenth of an even share is the least.
  workers[3].speed = 0.1;
  EXPECT_NEAR(RateAll(workers, model).compute_seconds, 10, 1e-6);
}

TEST(GroupRateTest, ExpectsTheSlowestMemberAsTrialsDo) {
  Random random(6);
  for (const double sigma : {0.02, 0.1, 0.3}) {
    for (const size_t count : {1, 2, 5, 30, 200}) {
      for (const double spread : {0.0, 0.5}) {
        ThroughputParameters model;
        model.noise_sigma = sigma;
        model.hiccup_chance = 0.002;
        std::vector<PlannedWorker> workers = Workers(count, 100);
        for (PlannedWorker& worker : workers) worker.speed *= 1 - spread * random.Uniform();
        EXPECT_NEAR(RateAll(workers, model).compute_seconds / SlowestByTrial(workers, model), 1,
                    0.03 + 0.3 * sigma)
            << count << " members, sigma " << sigma << ", spread " << spread;
      }
    }
  }
}

// Kurth et al. 2017 ran 9,600 nodes in groups. A simulation of that machine, with lognormal noise
// of 0.08, five-fold hiccups at 2e-5 per node and step, and communication of 0.02 log2 k + 0.001 G
// step times, gave these efficiencies for G groups.
TEST(GroupRateTest, GivesTheEfficiencyOfSimulatedCori) {
  const std::vector<std::pair<size_t, double>> published = {{1, 0.46}, {2, 0.52}, {4, 0.59},
                                                            {8, 0.62}, {9, 0.64}, {16, 0.65}};
  ThroughputParameters model;
  model.samples_per_step = 1;
  model.noise_sigma = 0.08;
  model.hiccup_chance = 2e-5;
  model.server_seconds_per_group = 0.001;
  model.costs.at(Level::kRack).latency_seconds = 0.01;
  for (const auto& [groups, efficiency] : published) {
    const ThroughputModel throughput(Workers(9600 / groups, 1), model);
    const double rate = throughput.SamplesPerSecond(throughput.Rate(Everybody(throughput)), groups);
    EXPECT_NEAR(rate / static_cast<double>(throughput.size()), efficiency, 0.035) << groups;
  }
}

TEST(GroupRateTest, CommunicationGrowsWithTheBordersItCrosses) {
  ThroughputParameters model;
  model.gradient_bytes = 100e6;
  model.costs.at(Level::kHost) = {
      .latency_seconds = 1e-6, .bytes_per_second = 20e9, .uplink_bytes_per_second = 2e9};
  model.costs.at(Level::kRack) = {
      .latency_seconds = 10e-6, .bytes_per_second = 2e9, .uplink_bytes_per_second = 1e9};
  model.costs.at(Level::kZone) = {.latency_seconds = 100e-6, .bytes_per_second = 2e9};
  const auto seconds = [&](std::vector<std::string> labels) {
    std::vector<PlannedWorker> workers = Workers(labels.size(), 100);
    for (size_t i = 0; i < labels.size(); ++i) workers[i].labels = labels[i];
    return RateAll(workers, model).communication_seconds;
  };
  EXPECT_EQ(seconds({"z/r/a"}), 0);
  // 2 (p - 1) / p bytes / bandwidth + 2 log2 p latencies.
  EXPECT_NEAR(seconds({"z/r/a", "z/r/a"}), 100e6 / 20e9 + 2e-6, 1e-9);
  EXPECT_NEAR(seconds({"z/r/a", "z/r/b"}), 100e6 / 2e9 + 20e-6, 1e-9);
  EXPECT_NEAR(seconds({"z/r/a", "z/r/b", "z/r/c", "z/r/d"}), 150e6 / 2e9 + 40e-6, 1e-9);
  EXPECT_NEAR(seconds({"z/r/a", "z/s/a"}), 100e6 / 1e9 + 200e-6, 1e-9);
  // Two members of a host share its uplink; a single worker of a host has its own link's speed.
  EXPECT_NEAR(seconds({"z/r/a", "z/r/a", "z/r/b", "z/r/b"}), 100e6 / 2e9 + 22e-6, 1e-9);
  // Two racks of two hosts: the racks' uplinks carry all of it, and each host's card half as much
  // in addition.
  EXPECT_NEAR(seconds({"z/r/a", "z/r/b", "z/s/a", "z/s/b"}), 100e6 / 1e9 + 220e-6, 1e-9);
  model.costs.at(Level::kRack).uplink_bytes_per_second = 9e9;
  EXPECT_NEAR(seconds({"z/r/a", "z/r/b", "z/s/a", "z/s/b"}), 150e6 / 2e9 + 220e-6, 1e-9);
  // Hosts without a name are as far apart as members of a rack.
  EXPECT_NEAR(seconds({"z/r", "z/r"}), 100e6 / 2e9 + 20e-6, 1e-9);
}

TEST(GroupRateTest, PushesShareTheUplinksOfTheirDomains) {
  ThroughputParameters model;
  model.pushed_bytes = 60e6;
  model.costs.at(Level::kCluster).bytes_per_second = 1e9;
  model.costs.at(Level::kRack).uplink_bytes_per_second = 0.1e9;
  model.costs.at(Level::kRack).latency_seconds = 0;
  model.costs.at(Level::kZone).latency_seconds = 0;
  std::vector<PlannedWorker> workers = Workers(6, 100, "z/r");
  workers[4].labels = workers[5].labels = "z/s";
  const ThroughputModel throughput(workers, model);
  const auto seconds = [&](std::vector<uint32_t> members) {
    return throughput.Rate(members).communication_seconds;
  };
  // Each of the four workers of the rack pushes 30 MB over its uplink, if all groups are like this.
  EXPECT_NEAR(seconds({0, 1}), 4 * 30e6 / 0.1e9, 1e-9);
  EXPECT_NEAR(seconds({0, 1, 2, 3}), 60e6 / 0.1e9, 1e-9);
  EXPECT_NEAR(seconds({4, 5}), 60e6 / 0.1e9, 1e-9);
  EXPECT_NEAR(seconds({3, 4}), 4 * 30e6 / 0.1e9, 1e-9);
  // Workers whose rack has no name have their own link only.
  for (PlannedWorker& worker : workers) worker.labels = "";
  const ThroughputModel unnamed(workers, model);
  EXPECT_NEAR(unnamed.Rate(std::vector<uint32_t>{0, 1}).communication_seconds,
              30e6 / 1e9 + 2 * model.costs.at(Level::kCluster).latency_seconds, 1e-9);
}

TEST(GroupRateTest, AFixedBatchIsDividedAmongTheMembers) {
  ThroughputParameters model{.samples_per_step = 10, .noise_sigma = 0};
  model.group_samples_per_step = 40;
  model.costs.at(Level::kRack).latency_seconds = 0;
  const ThroughputModel throughput(Workers(4, 100), model);
  for (const size_t members : {1, 2, 4}) {
    std::vector<uint32_t> group(members);
    std::iota(group.begin(), group.end(), 0);
    const ThroughputModel::Terms terms = throughput.Rate(group);
    EXPECT_NEAR(terms.compute_seconds, 0.4 / static_cast<double>(members), 1e-12);
    EXPECT_NEAR(throughput.SamplesPerSecond(terms, 1), 100 * static_cast<double>(members), 1e-9);
  }
}

TEST(GroupRateTest, NumbersOfGroupsAreExpectedToDoAsTheNearestThatWasTried) {
  ThroughputParameters model;
  const auto fit = [&](size_t groups) { return ThroughputModel(Workers(1, 1), model).Fit(groups); };
  EXPECT_EQ(fit(3), 1);
  model.fits = {{1, 0.5}};
  EXPECT_EQ(fit(1), 0.5);
  EXPECT_EQ(fit(2), 1);  // it gets a trial
  model.fits = {{1, 1.5}};
  EXPECT_EQ(fit(2), 1.5);
  model.fits = {{1, 0.5}, {4, 0.8}};
  EXPECT_EQ(fit(4), 0.8);
  EXPECT_EQ(fit(3), 0.8);
  EXPECT_EQ(fit(16), 0.8);
  model.fits = {{2, 0.5}, {16, 0.8}};
  EXPECT_EQ(fit(1), 0.5);
  EXPECT_EQ(fit(5), 0.5);
}

TEST(GroupRateTest, UnknownSpeedsAreTheMedian) {
  std::vector<PlannedWorker> workers = Workers(4, 0);
  workers[0].speed = 10;
  workers[1].speed = 20;
  workers[2].speed = 80;
  ThroughputParameters model;
  model.samples_per_step = 40;
  const ThroughputModel throughput(workers, model);
  EXPECT_EQ(throughput.seconds(3), 2);
  EXPECT_EQ(throughput.seconds(2), 0.5);
  EXPECT_GT(ThroughputModel(Workers(1, 0), model).seconds(0), 0);
}

TEST(GroupRateTest, FailuresCostAvailability) {
  std::vector<PlannedWorker> workers = Workers(10, 100);
  for (PlannedWorker& worker : workers) worker.failures_per_hour = 3;
  ThroughputParameters model;
  model.recovery_seconds = 60;
  EXPECT_NEAR(RateAll(workers, model).availability, 1 / 1.5, 1e-12);
  model.recovery_seconds = 0;
  EXPECT_EQ(RateAll(workers, model).availability, 1);
}

TEST(GroupRateTest, MoreGroupsCostProgress) {
  ThroughputParameters model;
  model.statistical_penalty = 0.25;
  const ThroughputModel throughput(Workers(1, 1), model);
  EXPECT_EQ(throughput.StatisticalFactor(1), 1);
  EXPECT_NEAR(throughput.StatisticalFactor(16), 0.5, 1e-12);
}

}  // namespace
}  // namespace covey
