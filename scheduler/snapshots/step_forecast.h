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
  // A worker's heartbeat: it has finished `step`, and has processed so many examples.
  void OnProgress(absl::Time now, NodeId worker, uint64_t step, uint64_t samples);
  void OnDeparture(NodeId worker);

  // Whether all members have reported, at least twice.
  bool Knows(const proto::Group& group) const;
  // The step that the group will have finished at `at`, or a later one, if it keeps its pace.
  uint64_t StepAt(const proto::Group& group, absl::Time at) const;
  // Whether all members have finished the step.
  bool HasFinished(const proto::Group& group, uint64_t step) const;
  // Examples of all workers that have ever reported.
  uint64_t samples() const { return samples_; }

 private:
  struct Worker {
    uint64_t step = 0;
    uint64_t samples = 0;
    absl::Time at;
    int reports = 0;
    // Steps per second from the report before pace_step to that one.
    double pace = 0;
    uint64_t pace_step = 0;
    absl::Time pace_at;
  };
  const Worker* Find(uint64_t worker) const;

  std::map<NodeId, Worker> workers_;
  uint64_t samples_ = 0;
};

}  // namespace covey::scheduler
