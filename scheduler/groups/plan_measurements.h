// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/link_costs.h"
#include "common/grouping/plan_inputs.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// What groups are planned by, as far as the scheduler knows it: how fast workers compute and how
// often they fail, what their tables are, and what links cost.
//
//   speed              the median of a worker's newest measurements, in heartbeats
//   failures per hour  deaths of the worker's rank since the scheduler started, over the time since
//                      then, at least an hour
//   gradient           the bytes of all dense tables in their wire formats; rows of sparse tables
//                      are not counted, because their number changes with each step
//   servers            what is pushed goes to them and comes back over all servers, each with a
//                      link like the fastest between hosts; under local once per round
//   statistical cost   that of the table with the highest (common/contract/statistical_cost.h)
//   recovery           the mean of what workers have measured
//
// Actor-confined, deterministic. `state` outlives it. Measurements are lost at a restart of the
// scheduler.
class PlanMeasurements {
 public:
  static constexpr absl::Duration kFreshFor = absl::Seconds(5);

  struct Options {
    // Groups divide their samples by the speeds of their members where programs follow
    // (StragglerRung::kShift).
    bool shifts_samples = false;
  };

  PlanMeasurements(const Options& options, const ClusterState& state)
      : options_(options), state_(state) {}

  // From the next call on.
  void SetOptions(const Options& options) { options_ = options; }
  // To be called once, before anything else.
  void Start(absl::Time now) { started_ = now; }
  // The progress of a worker, from its heartbeat.
  void OnHeartbeat(absl::Time now, NodeId worker, const proto::Progress& progress);
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node);
  // What links cost from now on; `source` is for users. Until then the defaults of LinkCosts hold.
  void SetCosts(const LinkCosts& costs, std::string source);

  // The workers that can be in groups, in growing order: ALIVE, not draining, not evicted.
  std::vector<NodeId> Workers() const;
  // Those of `workers` that have not been measured often enough since `since` for their speeds to
  // be believed, or that take no steps: the newest measurement is older than kFreshFor and than
  // three steps.
  std::vector<NodeId> Unmeasured(absl::Time now, const std::vector<NodeId>& workers,
                                 absl::Time since) const;
  // Of `workers`, some of Workers(), in growing order. Speeds that are not known are 0. What groups
  // did is not told (GroupExperience). Precondition: at least one worker.
  PlanInputs Inputs(absl::Time now, const std::vector<NodeId>& workers) const;
  // Samples per second of all members of ACTIVE groups: the median of each one's newest
  // measurements, of those since `since`.
  double SamplesPerSecond(absl::Time since) const;
  // Samples per step of all members of each ACTIVE group, by the number of its members, where all
  // have been measured; of several groups of one size that of the first.
  std::map<size_t, double> GroupSamples() const;
  // A worker's newest step, from its begin to its end; 0 = not known yet.
  double StepSeconds(NodeId worker) const;

 private:
  struct Measured {
    proto::Progress last;
    absl::Time at;  // when it came
    // The newest last.
    std::deque<double> speeds;
    struct Rate {
      absl::Time at;
      double samples_per_second = 0;  // waiting included
    };
    std::deque<Rate> rates;

    std::vector<double> RatesSince(absl::Time since) const;
  };

  double SpeedOf(NodeId worker) const;
  bool SharesFollowSpeed(const std::vector<NodeId>& workers) const;
  void AddTables(PlanInputs& inputs) const;

  Options options_;
  const ClusterState& state_;
  absl::Time started_;
  LinkCosts costs_;
  std::string costs_source_ = "links: assumed, 25 Gbit/s Ethernet";
  std::map<NodeId, Measured> measured_;
  std::map<uint32_t, uint64_t> deaths_;  // by rank
};

}  // namespace covey::scheduler
