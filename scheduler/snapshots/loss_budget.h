// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
// the interval less the time that recent ones took from their cuts on, but one at a time, each with
// its cut 1.5 s ahead. Nothing at risk is older than the interval while a flush takes less than
// half of the interval less 1.5 s, and at most half as long again as those before it.
//
// A flush falls behind when an update at risk is older than the interval; the first one, of which
// nobody knows how long it takes, when it is not in the store one interval after its cut was to be.
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

  // To be called at least every half second.
  void Tick(absl::Time now);
  // A snapshot is under way. `waits_for`: for users.
  struct Watched {
    absl::Time first_cut;  // when its first attempt was to be cut
    std::string waits_for;
  };
  void Watch(absl::Time now, const Watched& snapshot);
  // It is complete, and the newest in the state. Precondition: Watch at the same time.
  struct Completed {
    absl::Time first_cut;  // as Watched
    absl::Time planned_cut;
    absl::Time cut;  // it may wait for a step at which error feedback is flushed
    bool is_flush = false;
  };
  void OnComplete(absl::Time now, const Completed& snapshot);

  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

 private:
  void Look() { wants_flush_ = is_flushed() && at_risk_.Count() > 0; }
  bool IsInTime(absl::Time now, absl::Time first_cut) const {
    return !wants_flush_ || now <= std::min(first_cut, safe_) + options_.flush_every;
  }
  bool is_flushed() const { return options_.flush_every != absl::InfiniteDuration(); }

  const Options options_;
  ClusterState& state_;
  UpdatesAtRisk at_risk_;
  bool wants_flush_ = false;  // an update is at risk
  // No update at risk is older. Infinite until a snapshot is complete.
  absl::Time safe_ = absl::InfiniteFuture();
  absl::Duration took_;  // from cut to store: the longest of the recent flushes
  bool is_behind_ = false;
};

}  // namespace covey::scheduler
