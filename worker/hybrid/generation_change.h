// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "worker/group/communicator.h"
#include "worker/group/group_round.h"
#include "worker/hybrid/bucket_consensus.h"
#include "worker/hybrid/hybrid_model.h"

namespace covey::worker {

// How a model goes from one generation of its group to the next. The communicator decides when
// members meet and whether they are ready; this class decides which step is the last one before,
// stops the buckets, and lets them go on after it:
//
//   a model is set                  all members know that this step is the generation's last
//   kNoModel ────▶ kRunning ─────────────────────────────────▶ kLastStep
//                   ▲   │                                       │     │ all buckets idle: Reform
//                   │   │ a member is gone: Interrupt           │     ▼
//                   │   └────────────────▶ kChanging ◀──────────┴─────┘
//                   │                          │
//                   └── the group is ready ────┘
//
//   each ── no place in the plan, or asked to leave: Leave ──▶ kLeft ── a model is set ──▶ kRunning
//
// Planned change: the first bucket's all-gather tells all members that the same step is the last of
// this generation (Communicator). No bucket begins another step. When all buckets have finished it,
// the next generation forms, and goes on after the highest step of its members. Values and
// optimizer state stay on the servers. What LOCAL members have learned since their last push is
// given up, and so is the state of their inner optimizers. With kDistributed the group fails.
//
// Loss of a member: a member that dies in the middle of a step costs no step. The survivors stop,
// form the next generation, and tell each other which step each of their buckets has finished
// (bucket_consensus.h). A step that any member has finished was applied by all shards, so the other
// members pull its values. A step that no member has finished is done again with the gradients that
// are left, weighted by their samples. It is pushed under the same identity: each shard takes one
// update per group and step, whichever arrives first. So a member that finished a step before the
// loss and one that pulls it later have values of different times. With one group they are the same
// bits. A member that is moved to another group takes its gradient along, which may then count in
// both. The round of LOCAL tables goes on from what the members have learned so far, with the same
// push at its end; only the state of the inner optimizers is given up. A moved member leaves the
// rounds of LOCAL tables in its old group. If all members are moved or new, the rounds of the new
// group start at the values of the servers. With kDistributed the group fails.
//
// With kProgram no server has the values. A step that any member has finished is over for all,
// because its program may have used the mean gradient: one that has it broadcasts it. A member that
// lacks it counts the step as unfinished until it has it. So the step is done again when all
// members that had the mean are dead. A group that has finished a step takes in no new member.
//
// kChanging is not a state of this class: the group has left the round that the buckets belong to,
// or has not met since, and only the group knows that (Communicator::IsIn).
//
// Invariants:
// 1. No bucket begins anything in kChanging and kLeft, and no step after the last one in kLastStep.
// 2. In kChanging the buckets belong to no generation: the group may be ready already, but no
//    bucket begins before all of them have been taken over.
//
// Actor-confined. Deterministic.
class GenerationChange {
 public:
  enum class State { kNoModel, kRunning, kLastStep, kChanging, kLeft };
  static bool IsLegal(State from, State to);

  // `group` and `model` outlive it.
  GenerationChange(Communicator& group, HybridModel& model) : group_(group), model_(model) {}

  State state() const;
  // Whether a bucket may begin a step, or, with the step it has finished, a pull.
  bool MayBegin(uint32_t bucket, Step step) const;

  // What this member tells the others of the group that meets.
  MemberProgress Progress() const;

  // The program has set the model.
  void ModelSet() { RunIn(group_.round()); }
  // All members know that `step` is the last one of this generation.
  void EndAfter(absl::Time now, Step step, Outbox& outbox);
  // The last step is over in all buckets, and nothing is under way in the group.
  bool MayReform() const;
  // Lets the next generation form. The group may be ready before Reform returns. UNAVAILABLE,
  // CANCELLED: as Communicator::Reform; call Leave.
  absl::Status Reform(absl::Time now, Outbox& outbox);
  // The group leaves its generation in the middle of a step. False: it fails instead, because its
  // members update. Precondition: there is a model.
  bool Interrupt(absl::Time now, Outbox& outbox);
  // The worker is in no group any more.
  void Leave() { Enter(State::kLeft); }

  // Where the next generation goes on.
  struct NextGeneration {
    // No member was interrupted.
    bool planned = true;
    // The step of the program after which its next ones follow, in this generation and in the next.
    Step from;
    Step to;
    // This member comes from another group.
    bool moved = false;
    // After an interruption: by bucket.
    std::vector<BucketConsensus> consensus;

    // The newest step that any member has finished in any bucket.
    Step finished() const {
      Step newest = planned ? to : Step();
      for (const BucketConsensus& bucket : consensus) newest = std::max(newest, bucket.finished);
      return newest;
    }
    // The next generation's number of a step of the program.
    Step Renumbered(Step step) const {
      return Step(to.value() + (step > from ? step.value() - from.value() : 0));
    }
  };
  // Once the group is ready. Precondition: kChanging.
  NextGeneration Agree() const;
  // Takes the buckets over. NOT_FOUND, INVALID_ARGUMENT: as HybridModel; the group cannot go on
  // then.
  absl::Status GoOn(absl::Time now, std::shared_ptr<const ClusterView> view,
                    const NextGeneration& next, Outbox& outbox);

 private:
  void Enter(State to);
  // The buckets belong to this round of the group.
  void RunIn(const GroupRound& round);
  // The buckets belong to another group than the one that meets or is ready.
  bool HasMoved() const { return round_.group != group_.id(); }
  bool MembersUpdateAll() const;
  // All members pull the bucket before it goes on.
  bool HasToPull(size_t bucket, const BucketConsensus& consensus) const;
  absl::Status Adopt(absl::Time now, Step agreed, Outbox& outbox);
  absl::Status Rejoin(absl::Time now, const NextGeneration& next, Outbox& outbox);

  Communicator& group_;
  HybridModel& model_;
  State state_ = State::kNoModel;  // never kChanging
  GroupRound round_;               // that the buckets belong to
  Step last_step_;                 // of this generation, in kLastStep
  Step last_begun_;                // in kChanging: the newest step that any bucket had begun before
};

}  // namespace covey::worker
