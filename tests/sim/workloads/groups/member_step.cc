// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/member_step.h"

#include <algorithm>

namespace covey::sim {
namespace {

NodeId NodeOf(worker::WorkerActor& worker) { return worker.client().member().node(); }

}  // namespace

void MemberStep::BeginPull(worker::WorkerActor& worker) {
  step_ = worker.hybrid().step();
  steps_aside_ = worker.hybrid().steps_aside();
  round_before_ = std::exchange(round_, worker.group().round());
}

void MemberStep::Begin(worker::WorkerActor& worker) {
  BeginPull(worker);
  if (group_ != worker.group().id()) first_ = step_;
  group_ = worker.group().id();
  forming_ = !worker.group().ready();
}

void MemberStep::NoteMove(worker::WorkerActor& worker) {
  if (step_.value() == 0 || !worker.group().ready()) return;
  const GroupId group = worker.group().id();
  const uint64_t step_now = worker.hybrid().step().value();
  const bool same_step = group == group_ && step_now == step_.value();
  if (same_step) forming_ = false;
  if (worker.group().round() == round_ && !forming_) return;
  if (same_step) return;
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (uint64_t step = Oldest(); step <= step_.value(); ++step) {
      const uint64_t before = step_.value() - step;
      given_.MoveAway(NodeOf(worker), PlaceOf(t, step),
                      {group, Step(step_now - std::min(step_now, before)), tables_[t]});
    }
  }
}

void MemberStep::Give(worker::WorkerActor& worker, size_t tensor) {
  // A gradient that is submitted after the group stepped past this member is dropped.
  if (!SteppedAside(worker)) given_.Give(NodeOf(worker), PlaceOf(tensor, step_.value()));
}

void MemberStep::Finish(worker::WorkerActor& worker, size_t tensor, Ended ended) {
  given_.Finish(NodeOf(worker), PlaceOf(tensor, LastIn(ended).value()));
}

void MemberStep::TakeBack(worker::WorkerActor& worker, size_t tensor) {
  for (uint64_t step = Oldest(); step <= step_.value(); ++step) {
    given_.TakeBack(NodeOf(worker), PlaceOf(tensor, step));
  }
}

Step MemberStep::LastIn(Ended ended) const {
  const uint64_t lag = ended == Ended::kAllSteps ? 0 : lag_;
  return Step(step_.value() - std::min(step_.value(), lag));
}

bool MemberStep::GroupChanged(worker::WorkerActor& worker) const {
  return worker.group().round() != round_ || (lag_ > 0 && round_ != round_before_);
}

bool MemberStep::SteppedAside(worker::WorkerActor& worker) const {
  return worker.hybrid().steps_aside() != steps_aside_;
}

}  // namespace covey::sim
