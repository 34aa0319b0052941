// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/counters.h"
#include "client/step_times.h"
#include "common/metrics/duration_histogram.h"
#include "common/metrics/metric_page.h"
#include "common/metrics/metrics_server.h"
#include "worker/engine/worker_actor.h"
#include "worker/progress.h"

namespace covey::worker {

// What a worker shows to Prometheus, without what every member does. A value.
struct WorkerMetrics {
  // As of the newest step that the program has reported.
  Progress progress = {};
  // Where the program's time went, in seconds: all reported steps but the first, which has no
  // beginning.
  client::StepTimes seconds = {};
  DurationHistogram step_durations{DurationHistogram::kWide};
  // As of now.
  uint64_t steps_aside = 0;
  uint64_t recoveries = 0;
  // 0 = the worker is in no group.
  uint32_t group_members = 0;
  bool is_away = false;
  uint64_t operations = 0;
  // Messages of a process other than the node in whose name they came, or that is no server.
  uint64_t impostors = 0;
  client::Counters requests = {};
  DurationHistogram push_times{DurationHistogram::kWide};

  // On the loop's thread.
  static WorkerMetrics Of(absl::Time now, WorkerActor& actor);
  // Pure.
  void AddTo(MetricPage& page) const;
};

// A worker is ready when it is a member of the job, and in a group whose members have met.
std::vector<ReadyCondition> WorkerConditions(absl::Time now, WorkerActor& actor);

}  // namespace covey::worker
