// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/step_forecast.h"

#include <algorithm>
#include <cmath>

namespace covey::scheduler {
namespace {

// A worker whose step has not changed for longer does something else than training.
constexpr absl::Duration kIdleAfter = absl::Seconds(5);
// Reports that arrive together, after a delay, say nothing about the pace.
constexpr absl::Duration kPaceOver = absl::Milliseconds(250);

// Workers report the steps that they have taken; a group counts from its first step.
uint64_t StepsBefore(const proto::Group& group) {
  return std::max<uint64_t>(group.first_step(), 1) - 1;
}

}  // namespace

void StepForecast::OnProgress(absl::Time now, NodeId id, uint64_t step, uint64_t samples) {
  const auto [at, is_new] = workers_.try_emplace(id);
  Worker& worker = at->second;
  ++worker.reports;
  if (samples > worker.samples) samples_ += samples - worker.samples;
  worker.samples = std::max(worker.samples, samples);
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
  } else if (now - worker.at > kIdleAfter) {
    worker.pace = 0;
  }
}

void StepForecast::OnDeparture(NodeId worker) { workers_.erase(worker); }

const StepForecast::Worker* StepForecast::Find(uint64_t worker) const {
  const auto found = workers_.find(NodeId(worker));
  return found == workers_.end() ? nullptr : &found->second;
}

bool StepForecast::Knows(const proto::Group& group) const {
  return std::all_of(group.members().begin(), group.members().end(), [this](uint64_t member) {
    const Worker* worker = Find(member);
    return worker != nullptr && worker->reports >= 2;
  });
}

uint64_t StepForecast::StepAt(const proto::Group& group, absl::Time at) const {
  uint64_t furthest = 0;
  for (const uint64_t member : group.members()) {
    const Worker* worker = Find(member);
    if (worker == nullptr) continue;
    const double ahead = std::max(0.0, absl::ToDoubleSeconds(at - worker->at)) * worker->pace;
    furthest = std::max(furthest, worker->step + static_cast<uint64_t>(std::ceil(ahead)));
  }
  return StepsBefore(group) + furthest;
}

bool StepForecast::HasFinished(const proto::Group& group, uint64_t step) const {
  return std::all_of(group.members().begin(), group.members().end(), [&](uint64_t member) {
    const Worker* worker = Find(member);
    return worker != nullptr && StepsBefore(group) + worker->step >= step;
  });
}

}  // namespace covey::scheduler
