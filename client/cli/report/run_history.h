// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/step_times.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The report of one group at one moment.
struct HistoryPoint {
  // Since the run began.
  double seconds = 0;
  uint64_t step = 0;
  uint64_t samples = 0;
  double samples_per_second = 0;
  double loss = 0;
  double staleness = 0;
  // Steps so far that continued without a late member; seconds per step of the slowest member's own
  // work, and of waiting.
  uint64_t steps_aside = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  // The members' mean; 0 until it has been measured.
  client::StepTimes step_times;
};

struct GroupHistory {
  uint32_t group = 0;
  // Seconds, step and samples never fall.
  std::vector<HistoryPoint> points;
};

struct HistoryEvent {
  // Since the run began.
  double seconds = 0;
  std::string text;
};

// The history of a run, from successive status replies of the scheduler. Deterministic. Keeps at
// most kPointsMax points per group (when there are more, it drops every other one) and at most
// kEventsMax events, the first ones.
class RunHistory {
 public:
  static constexpr size_t kPointsMax = 2048;
  static constexpr size_t kEventsMax = 1000;

  // `status` holds only events that earlier ones did not. A group that made no progress since the
  // last call gets no point.
  void Add(absl::Duration elapsed, const proto::StatusReply& status);

  // In growing order of group.
  const std::vector<GroupHistory>& groups() const { return groups_; }
  // Where the time of a step went, as the mean over the steps of all groups; 0 when no point has
  // been measured.
  client::StepTimes MeanStepTimes() const;

  // Oldest first.
  const std::vector<HistoryEvent>& events() const { return events_; }

 private:
  GroupHistory& HistoryOf(uint32_t group);

  std::vector<GroupHistory> groups_;
  std::vector<HistoryEvent> events_;
};

}  // namespace covey::cli
