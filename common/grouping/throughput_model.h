// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"

namespace covey {

// A worker as the group planner sees it.
struct PlannedWorker {
  NodeId node;
  uint32_t rank = 0;
  // zone/rack/host/device; missing parts count as empty.
  std::string labels;
  // Samples per second while it computes; 0 = unknown, taken as the median of the known ones.
  double speed = 0;
  // Expected failures.
  double failures_per_hour = 0;
};

// Parameters of a group's throughput that do not depend on its members.
struct ThroughputParameters {
  // Samples that one member computes per step.
  double samples_per_step = 32;
  // Above 0: samples that a group of any size computes per step, divided evenly. For programs that
  // divide a fixed batch among the members of a group.
  double group_samples_per_step = 0;
  // Members get parts of the group's samples in proportion to their speeds (the straggler ladder's
  // shares), so that none waits for a slow one; each at least StragglerOptions::share_min of an
  // even part.
  bool shares_follow_speed = false;
  // Bytes that a step reduces and gathers; 0 = only latency counts.
  double gradient_bytes = 0;
  // Bytes that a step of a group pushes on average: as many, or fewer under local, where a round
  // pushes once.
  double pushed_bytes = 0;
  LinkCosts costs;
  // Step times of one member vary like a lognormal of this sigma; with a small chance a step takes
  // a few times longer (a hiccup).
  double noise_sigma = 0.05;
  double hiccup_chance = 0;
  double hiccup_factor = 5;
  // The time that every group adds, at the servers, to each step of all groups: the gradient over
  // the summed bandwidth of the servers, once for each direction that does not overlap with the
  // other.
  double server_seconds_per_group = 0;
  // Groups wait for each other, at each step or at the end of a round, so all are as fast as the
  // slowest.
  bool groups_in_step = false;
  // A failure stops its group for this time.
  double recovery_seconds = 30;
  // The statistical cost of more groups: progress per sample falls as groups^-penalty. 0 = nothing,
  // as under bsp. Measured on quadratics, sixteen groups against one: 0.07 for buffered contracts
  // (1.2 x the samples), 0.25 for apply-on-arrival (2 x the samples).
  double statistical_penalty = 0.07;
  // What numbers of groups did, where that is known: measured over predicted samples per second.
  std::map<size_t, double> fits;
};

// Estimates the throughput of groups. Workers are numbered by place in the topology, so that
// neighbors have adjacent numbers; ties by rank, then node. Immutable, pure.
class ThroughputModel {
 public:
  ThroughputModel(std::vector<PlannedWorker> workers, const ThroughputParameters& model);

  size_t size() const { return workers_.size(); }
  const PlannedWorker& worker(uint32_t index) const { return workers_[index]; }
  // Seconds that a worker computes per step, without noise.
  double seconds(uint32_t index) const { return seconds_[index]; }
  // Number of the worker's domain, in growing order of `index`.
  uint32_t domain(uint32_t index, Level level) const {
    return domains_[static_cast<size_t>(level)][index];
  }

  struct Terms {
    size_t members = 0;
    // Expected time of the slowest member.
    double compute_seconds = 0;
    double communication_seconds = 0;
    // Fraction of the time that is not lost to failures.
    double availability = 1;
  };
  // The terms of a group of workers, given in growing order of index. O(k log k).
  //
  //   compute        max over i of t_i exp(sigma e_i), t_i the i-th longest time, e_i the expected
  //                  maximum of i standard normals (Blom 1958): the slowest i are at least as slow
  //                  as t_i; then the chance of a hiccup, if that takes longer. Within 3 % of
  //                  trials, plus 0.3 sigma. With shares that follow speed all t_i are equal: their
  //                  harmonic mean
  //   communication  the hierarchical all-reduce and the way to the servers. Of p places that meet
  //                  at a level, each sends 2 (p - 1) / p of the gradient, or of what it holds of
  //                  it by then; levels work at once, so the slower of a member's own link and the
  //                  uplinks counts, and 2 log2 p latencies of each level. Then a member's part
  //                  of the push to the servers, while the values come back: over its own link, and
  //                  over uplinks that it shares with all workers of its domains, as if each of
  //                  these pushed as much
  //   availability   1 / (1 + failures per second * recovery)
  Terms Rate(std::span<const uint32_t> members) const;

  // One of `groups` groups takes: compute + communication + server_seconds_per_group * groups.
  double StepSeconds(const Terms& terms, size_t groups) const;
  // The samples of a step times availability, over the time of a step. `slowest_seconds`: the
  // longest step of all groups; only used where these are in step.
  double SamplesPerSecond(const Terms& terms, size_t groups, double slowest_seconds = 0) const;
  bool groups_in_step() const { return model_.groups_in_step; }
  // Progress per sample with `groups` groups: groups^-penalty.
  double StatisticalFactor(size_t groups) const;
  // By what the prediction for `groups` groups is multiplied: how such groups did. A number that
  // has not been tried is expected to do as the nearest one that has, because the model is wrong in
  // the same way for groups of about one size; but while only one has been tried at least as
  // predicted. So where the present groups do less than predicted, the best other number gets a
  // trial.
  double Fit(size_t groups) const;

 private:
  double ExpectedSlowest(std::span<const uint32_t> members) const;
  // Samples per step of a group of so many members.
  double Samples(size_t members) const;
  double Communication(std::span<const uint32_t> members) const;
  // The most places that meet in one domain of a level; a place is a next narrower domain, or a
  // member.
  struct Meeting {
    size_t places = 0;
    size_t smallest = 0;  // members of the smallest place
    Level link = Level::kDevice;
  };
  Meeting MeetAt(std::span<const uint32_t> members, size_t level) const;
  Level LinkWithin(uint32_t index, size_t level) const;

  ThroughputParameters model_;
  std::vector<PlannedWorker> workers_;
  std::vector<TopologyPath> paths_;
  std::vector<double> seconds_;
  std::array<std::vector<uint32_t>, kLevels> domains_;
  // That a worker takes to push a byte, when all workers push as much as it.
  std::vector<double> push_seconds_per_byte_;
  std::vector<double> slowest_of_;  // exp(sigma e_i), by i
};

}  // namespace covey
