// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/step_forecast.h"

#include <algorithm>
#include <cmath>

namespace covey::scheduler {
namespace {

// A worker whose step has not changed for longer, and for as many steps at its pace, does something
// else than training.
constexpr absl::Duration kIdleAfter = absl::Seconds(5);
constexpr double kIdleAfterSteps = 5;
// Reports that arrive together, after a delay, say nothing about the pace.
constexpr absl::Duration kPaceOver = absl::Milliseconds(250);

// The last step that the group does not take, because it has formed later.
uint64_t StepBefore(const proto::Group& group) {
  return std::max<uint64_t>(1, group.first_step()) - 1;
}

}  // namespace

void StepForecast::OnProgress(absl::Time now, NodeId id, const Report& report) {
  const auto& [group, step, samples, unconfirmed_step, view_epoch] = report;
  Worker& worker = workers_[id];
  if (worker.group != group) worker = {.group = group, .samples = worker.samples};
  const bool is_new = worker.reports++ == 0;
  if (samples > worker.samples) samples_ += samples - worker.samples;
  worker.samples = std::max(worker.samples, samples);
  worker.unconfirmed_step = unconfirmed_step;
  worker.view_epoch = view_epoch;
  if (is_new || step > worker.step) {
    worker.step = step;
    worker.at = now;
    if (!is_new && now - worker.pace_at < kPaceOver) return;
    if (!is_new) {
      worker.pace = static_cast<double>(step - worker.pace_step) /
                    absl::ToDoubleSeconds(now - worker.pace_at);
    }
    worker.pace_step = step;
    worker.pace_at = now;
  } else if (now - worker.at > kIdleAfter &&
             absl::ToDoubleSeconds(now - worker.at) * worker.pace > kIdleAfterSteps) {
    worker.pace = 0;
  }
}

void StepForecast::OnDeparture(NodeId worker) { workers_.erase(worker); }

const StepForecast::Worker* StepForecast::Find(const proto::Group& group, uint64_t worker) const {
  const auto found = workers_.find(NodeId(worker));
  if (found == workers_.end() || found->second.group != GroupId(group.id())) return nullptr;
  return &found->second;
}

bool StepForecast::Knows(const proto::Group& group) const {
  return std::all_of(group.members().begin(), group.members().end(), [&](uint64_t member) {
    const Worker* worker = Find(group, member);
    return worker != nullptr && worker->reports >= 2;
  });
}

uint64_t StepForecast::StepAt(const proto::Group& group, absl::Time at) const {
  uint64_t furthest = 0;
  for (const uint64_t member : group.members()) {
    const Worker* worker = Find(group, member);
    if (worker == nullptr) continue;
    const double ahead = std::max(0.0, absl::ToDoubleSeconds(at - worker->at)) * worker->pace;
    furthest = std::max(furthest, worker->step + static_cast<uint64_t>(std::ceil(ahead)));
    const uint64_t next = std::max(worker->step, StepBefore(group)) + 1;
    if (worker->unconfirmed_step == next) furthest = std::max(furthest, next);
  }
  return furthest;
}

bool StepForecast::HasPassed(const proto::Group& group, uint64_t step, Epoch epoch) const {
  const uint64_t before = StepBefore(group);
  return std::all_of(group.members().begin(), group.members().end(), [&](uint64_t member) {
    const Worker* worker = Find(group, member);
    return worker != nullptr && std::max(worker->step, before) >= step &&
           worker->view_epoch >= epoch &&
           (worker->unconfirmed_step == 0 || worker->unconfirmed_step > step);
  });
}

}  // namespace covey::scheduler
