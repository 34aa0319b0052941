// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/snapshots/updates_at_risk.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Keeps the job's updates at risk within what it may lose (JobDurability): when the next flush is
// due, and whether flushes keep up with their interval.
//
// An update is at risk until the next cut after it is in the store. So flushes follow each other in
// the interval less the time that recent ones took from their cuts on: then nothing at risk is
// older than the interval, unless a flush takes half as long again as those before it.
//
// A flush falls behind when the state at its cut is not in the store when the next cut was to be.
// An event says so, once until a flush has been in time.
//
// Used by Snapshots. Actor-confined, deterministic. `state` outlives it.
class LossBudget {
 public:
  struct Options {
    // As SnapshotsOptions.
    absl::Duration flush_every = absl::InfiniteDuration();
    absl::Duration wall_clock_ahead = absl::ZeroDuration();
  };
  LossBudget(const Options& options, ClusterState& state)
      : options_(options), state_(state), at_risk_(state, options.wall_clock_ahead) {}

  // Once, before anything else.
  void Start(absl::Time now) { at_risk_.Start(now); }
  // A server's heartbeat, and its end.
  void OnLoad(NodeId server, const proto::ServerLoad& load);
  void OnDeparture(NodeId server);

  // When the flush after a snapshot is due that began at `begun`. InfiniteFuture(): no update is at
  // risk, or the job is not flushed, or closes.
  absl::Time NextFlush(absl::Time begun) const;

  // A snapshot is under way, whose cut was to be at `cut`. `waits_for`: for users.
  void Watch(absl::Time now, absl::Time cut, const std::string& waits_for);
  // It is complete, and the newest in the state. `took`: since it was really cut.
  void OnComplete(absl::Time now, absl::Time cut, absl::Duration took);

  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

 private:
  void Look() { wants_flush_ = is_flushed() && at_risk_.Count() > 0; }
  bool is_flushed() const { return options_.flush_every != absl::InfiniteDuration(); }

  const Options options_;
  ClusterState& state_;
  UpdatesAtRisk at_risk_;
  bool wants_flush_ = false;  // an update is at risk
  absl::Duration took_;       // from cut to store: the longest of the recent ones
  bool is_behind_ = false;
};

}  // namespace covey::scheduler
