// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/metrics/duration_histogram.h"
#include "common/metrics/metric_page.h"
#include "proto/scheduler.pb.h"
#include "scheduler/log/commit_pipeline.h"
#include "scheduler/snapshots/snapshots.h"
#include "scheduler/state/event_counts.h"

namespace covey::scheduler {

// What a scheduler shows to Prometheus.
struct SchedulerMetrics {
  bool leads = false;
  uint64_t expected_servers = 0;
  uint64_t expected_workers = 0;
  // Of a scheduler that leads: what `covey status` shows, without the events.
  proto::StatusReply status = {};
  EventCounts events = {};
  DurationHistogram log_writes{CommitPipeline::kWriteBounds};
  DurationHistogram snapshot_parts{Snapshots::kPartBounds};
  // Calls refused for the caller's certificate, and for want of a right.
  uint64_t denied_for_certificate = 0;
  uint64_t denied_for_right = 0;

  // Also when it does not lead, with zeros. Groups beyond the 128 oldest live ones, and tables
  // beyond the 16 oldest, are added up as "_other". Pure.
  void AddTo(MetricPage& page) const;
};

}  // namespace covey::scheduler
