// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/cluster/ids.h"
#include "tests/sim/workloads/truth/given_gradients.h"
#include "worker/engine/worker_actor.h"
#include "worker/group/group_round.h"

namespace covey::sim {

// The step that a member is in, as its program sees it. The group may do the step again, in another
// round or with other members, and the member may be moved to another group. This class notices,
// and tells GivenGradients in which steps the member's gradients count.
//
// Actor-confined. `given` outlives it.
class MemberStep {
 public:
  // `lag`: the number of earlier steps that are in flight together with this one.
  MemberStep(uint64_t lag, GivenGradients& given) : lag_(lag), given_(given) {}

  // The tables of the tensors. Comes before the first step.
  void SetTables(std::vector<TableId> tables) { tables_ = std::move(tables); }
  // The member begins to pull: it is between two steps.
  void BeginPull(worker::WorkerActor& worker);
  // The worker has begun a step.
  void Begin(worker::WorkerActor& worker);
  // Call it at every call of the program, and after each submission. Notes when given gradients
  // have come to count in steps of another group, or in other steps.
  void NoteMove(worker::WorkerActor& worker);

  // The member is about to submit its gradient.
  void Give(worker::WorkerActor& worker, size_t tensor);
  // A member is told that its step has ended, and once that all steps have, the lagging ones too.
  enum class Ended { kStep, kAllSteps };
  void Finish(worker::WorkerActor& worker, size_t tensor, Ended ended);
  // The member was told that the tensor failed.
  void TakeBack(worker::WorkerActor& worker, size_t tensor);

  Step step() const { return step_; }
  GroupId group() const { return group_; }
  // Of this member in its group.
  Step first() const { return first_; }
  // The last step whose gradients are in once this one has ended.
  Step LastIn(Ended ended) const;
  // Whether the group has changed since a step in flight began. The member may then get values of
  // another moment than the other members.
  bool GroupChanged(worker::WorkerActor& worker) const;
  // Whether the group has stepped past this member.
  bool SteppedAside(worker::WorkerActor& worker) const;

 private:
  GivenGradients::Place PlaceOf(size_t tensor, uint64_t step) const {
    return {group_, Step(step), tables_[tensor]};
  }
  // The oldest step that may be in flight.
  uint64_t Oldest() const { return LastIn(Ended::kStep).value(); }

  const uint64_t lag_;
  GivenGradients& given_;
  std::vector<TableId> tables_;
  Step step_;
  GroupId group_;
  Step first_;
  uint64_t steps_aside_ = 0;
  // The group's round when this step began, and the one before.
  worker::GroupRound round_;
  worker::GroupRound round_before_;
  // The group was forming then: its members agree which step this is, and it may be another one.
  bool forming_ = false;
};

}  // namespace covey::sim
