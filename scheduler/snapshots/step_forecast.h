// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// How far each worker has come and how fast it is, from its heartbeats. So a cut can be ordered for
// steps that lie ahead.
//
// Actor-confined, deterministic. A worker's progress is lost at a restart of the scheduler, until
// its next heartbeat.
class StepForecast {
 public:
  // The worker's group, the newest of the group's steps that the worker has finished, and the
  // examples that it has processed.
  struct Report {
    GroupId group;
    uint64_t step = 0;
    uint64_t samples = 0;
    // As Progress.unconfirmed_step and view_epoch.
    uint64_t unconfirmed_step = 0;
    Epoch view_epoch;
  };
  // A worker's heartbeat.
  void OnProgress(absl::Time now, NodeId worker, const Report& report);
  void OnDeparture(NodeId worker);

  // Whether all members have reported as such, at least twice.
  bool Knows(const proto::Group& group) const;
  // The step that the group will have finished at `at`, or a later one, if it keeps its pace; no
  // step before one whose push is under way, since some shards may have it already.
  uint64_t StepAt(const proto::Group& group, absl::Time at) const;
  // Whether all members have finished the step, or the group begins after it, and the heads of all
  // shards as of `epoch` have received their pushes up to it.
  bool HasPassed(const proto::Group& group, uint64_t step, Epoch epoch) const;
  // Examples of all workers that have ever reported.
  uint64_t samples() const { return samples_; }

 private:
  struct Worker {
    // All but the examples begins again in another group.
    GroupId group;
    uint64_t step = 0;
    uint64_t samples = 0;
    uint64_t unconfirmed_step = 0;
    Epoch view_epoch;
    absl::Time at;
    int reports = 0;
    // Steps per second from the report before pace_step to that one.
    double pace = 0;
    uint64_t pace_step = 0;
    absl::Time pace_at;
  };
  // Null when the worker has not reported as a member of the group.
  const Worker* Find(const proto::Group& group, uint64_t worker) const;

  std::map<NodeId, Worker> workers_;
  uint64_t samples_ = 0;
};

}  // namespace covey::scheduler
