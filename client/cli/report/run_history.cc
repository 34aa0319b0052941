// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/run_history.h"

#include <algorithm>
#include <utility>

#include "client/cli/status/group_progress.h"

namespace covey::cli {
namespace {

void KeepEveryOther(std::vector<HistoryPoint>& points) {
  size_t kept = 0;
  for (size_t i = 0; i < points.size(); i += 2) points[kept++] = points[i];
  points.resize(kept);
}

}  // namespace

void RunHistory::Add(absl::Duration elapsed, const proto::StatusReply& status) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  for (const GroupProgress& progress : ProgressOfGroups(status)) {
    if (!progress.started) continue;
    std::vector<HistoryPoint>& points = HistoryOf(progress.group).points;
    if (!points.empty() &&
        (progress.step <= points.back().step || progress.samples < points.back().samples)) {
      continue;
    }
    if (points.size() == kPointsMax) KeepEveryOther(points);
    points.push_back({.seconds = seconds,
                      .step = progress.step,
                      .samples = progress.samples,
                      .samples_per_second = progress.samples_per_second,
                      .loss = progress.loss,
                      .staleness = progress.staleness,
                      .steps_aside = progress.steps_aside,
                      .compute_seconds = progress.compute_seconds,
                      .wait_seconds = progress.wait_seconds,
                      .step_times = progress.step_times});
  }
  // Events count from the scheduler's start, and so does its uptime.
  const double scheduler_start = seconds - static_cast<double>(status.uptime_ms()) / 1000;
  for (const proto::Event& event : status.events()) {
    if (events_.size() == kEventsMax) break;
    const double at = scheduler_start + static_cast<double>(event.at_ms()) / 1000;
    events_.push_back({.seconds = std::max(at, 0.0), .text = event.text()});
  }
}

client::StepTimes RunHistory::MeanStepTimes() const {
  client::StepTimes sum;
  double steps = 0;
  for (const GroupHistory& group : groups_) {
    uint64_t before = 0;
    for (const HistoryPoint& point : group.points) {
      const double taken = static_cast<double>(point.step - std::exchange(before, point.step));
      if (!(point.step_times.total() > 0)) continue;
      sum.Add(point.step_times, taken);
      steps += taken;
    }
  }
  client::StepTimes mean;
  if (steps > 0) mean.Add(sum, 1 / steps);
  return mean;
}

GroupHistory& RunHistory::HistoryOf(uint32_t group) {
  const auto place =
      std::lower_bound(groups_.begin(), groups_.end(), group,
                       [](const GroupHistory& a, uint32_t id) { return a.group < id; });
  if (place != groups_.end() && place->group == group) return *place;
  return *groups_.insert(place, GroupHistory{.group = group});
}

}  // namespace covey::cli
