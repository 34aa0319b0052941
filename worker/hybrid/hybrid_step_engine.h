// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/request_engine.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "worker/group/communicator.h"
#include "worker/group/member_progress.h"
#include "worker/hybrid/generation_change.h"
#include "worker/hybrid/hybrid_model.h"
#include "worker/hybrid/lateness_monitor.h"
#include "worker/hybrid/recovery_meter.h"
#include "worker/hybrid/step_tuning.h"
#include "worker/hybrid/tensor_request.h"
#include "worker/hybrid_options.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// The hybrid step of one group member: synchronous inside the group, under each table's contract
// between groups. Each tensor of the model is one table. Small tensors share a bucket
// (model_layout.h). Each bucket has a pipeline of its own (bucket_pipeline.h), so that the
// communication of one overlaps that of another and the program's computation. Members may submit
// tensors in different orders.
//
// Member i answers for its own part of each bucket only, so that every member's links work. Mode
// and contract say where the part is updated: on the servers, or on the member (part_update.h).
//
//   program ── requests ──▶ HybridStepEngine ──▶ BucketPipeline, one per bucket ──▶ BucketRun
//   group and view ───────────▶ │  │  │
//          GenerationChange ◀───┘  │  └──▶ RecoveryMeter
//          LatenessMonitor ◀───────┤
//               StepTuning ◀───────┘
//
// Lateness: a program that is late does not hold the group up. When the view asks for it, the
// engine goes through the step for the program, without a gradient (lateness.h). What the program
// submits for that step is dropped and counted. The program's next step is the group's.
//
// A group that changes its members or loses one goes on in another generation: generation_change.h.
//
// Tuning: between two steps, all members may go over to other buckets, or to another way for them
// to travel (step_tuning.h). The search begins again in each generation.
//
// Invariants:
// 1. All members end a step with the same bits in `values`. With one group under `bsp` they are
//    those of one process that sums gradients in the order that the group's algorithm and
//    ModelLayout::parts_of give, and applies one optimizer update.
// 2. When one member's update fails, the group fails with its status: half a step is no step.
// 3. Deadlines hold in every state. What still waits when its deadline passes, for members to meet
//    or for another step or pull, fails the group with DEADLINE_EXCEEDED.
//
// Actor-confined. Deterministic. Client and communicator outlive the engine and see every message
// first.
class HybridStepEngine {
 public:
  HybridStepEngine(client::RequestEngine& client, Communicator& group)
      : group_(group),
        link_(client, group),
        model_(group, link_),
        change_(group, model_),
        tuning_(group) {}

  // After the communicator has taken it in.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox);
  // The group leaves its generation in the middle of a step. Returns the newest step that is
  // finished here.
  uint64_t Interrupted(absl::Time now, Outbox& outbox);
  // How far each bucket has come: what this member tells the others when they meet.
  MemberProgress Progress() const { return change_.Progress(); }
  // The worker is in no group any more: everything ends, with ABORTED, or with CANCELLED when the
  // worker was asked to leave.
  void Left(absl::Time now, const absl::Status& status, Outbox& outbox);
  // The group has become ready.
  void GroupReady(absl::Time now, Outbox& outbox);

  // The model: one table per tensor, the same ones in the same order on every member. When the
  // group is ready, and nothing is under way. `patience`: deadline of what the engine does without
  // the program.
  // NOT_FOUND: a table is not in the view. INVALID_ARGUMENT: mode and contract do not go together,
  // or a definition that this member must follow is not valid; names the table.
  absl::Status SetTables(std::span<const TableId> tables, const HybridOptions& options,
                         absl::Duration patience);
  // The program submits no more: the engine never steps aside for it.
  void Close() { program_has_ended_ = true; }
  // The program is away until then, or came back at that time: the engine does not step aside for
  // it meanwhile.
  void SetAwayUntil(absl::Time until) { lateness_.SetAwayUntil(until); }
  bool is_away(absl::Time now) const { return lateness_.is_away(now); }
  // Elements of each tensor.
  size_t element_count(size_t tensor) const { return model_.layout().place_of(tensor).count; }

  // Steps are counted from 1; every tensor is submitted once per step, in any order. The step that
  // begins is the next one, or, after stepping aside, the one that the group is at.
  void BeginStep(absl::Time now, Outbox& outbox);
  // The newest step that has begun here, also without the program.
  Step step() const;
  // The newest step that is over here for all tensors, as the group counts. Step() = none.
  Step finished() const { return model_.finished_by_all(); }
  // Preconditions: after SetTables and BeginStep; spans have the tensor's size. Errors, here and
  // below: those of the group and of pushes; ABORTED: this worker is in no group any more;
  // CANCELLED: the same, because it was asked to leave.
  void Submit(absl::Time now, TensorRequest request, Outbox& outbox);
  // The newest values of the servers (of the members, where these update): every member gets the
  // same bits. For all tensors, by all members, between the same steps.
  void Pull(absl::Time now, TensorRequest request, Outbox& outbox);
  // With lag, the values of the last step submitted; else what is there already.
  void Flush(absl::Time now, TensorRequest request, Outbox& outbox);

  // A slice that the communicator has taken tells how far its sender is.
  void Observe(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  GenerationChange::State state() const { return change_.state(); }
  const HybridModel& model() const { return model_; }
  // As ServerLink::TakeStaleness.
  double TakeStaleness() { return link_.TakeStaleness(); }
  // Steps that the group took without this program's gradient.
  uint64_t steps_aside() const { return lateness_.steps_aside(); }
  const RecoveryMeter& recovery() const { return recovery_; }
  const StepTuning& tuning() const { return tuning_; }

 private:
  bool has_left() const { return state() == GenerationChange::State::kLeft; }
  bool is_changing() const { return state() == GenerationChange::State::kChanging; }
  BucketPipeline::Environment Environment();
  // Whether a bucket may begin a step, or, with the step it has finished, a pull.
  bool MayBegin(uint32_t bucket, Step step) const {
    return change_.MayBegin(bucket, step) && tuning_.MayBegin(step);
  }
  void BucketChanged(absl::Time now, uint32_t bucket, uint64_t agreed_plan_epoch, Outbox& outbox);
  // Goes over to the settings on which all members have agreed.
  void Tune(absl::Time now, Outbox& outbox);
  // Where other members decided on other buckets before the group was interrupted, and this one did
  // not, it goes over to them. INVALID_ARGUMENT: a member has a model that this one cannot have.
  absl::Status FollowLayout(absl::Time now, Outbox& outbox);
  // Other buckets, and the way that they travel. Takes along what the program has submitted, which
  // may begin at once. A failure fails the group.
  void SetFusion(absl::Time now, const FusionLimits& fusion, const StepRoute& route,
                 Outbox& outbox);
  // Ends the group when something waits beyond its deadline.
  void CheckDeadlines(absl::Time now, Outbox& outbox);
  void UpdateRecovery(absl::Time now);
  LatenessRule Rule() const;
  // When a bucket is to step aside; InfinitePast() = as soon as possible.
  absl::Time StepAsideAt(size_t bucket, const LatenessRule& rule) const;

  Communicator& group_;
  ServerLink link_;
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();
  HybridModel model_;
  GenerationChange change_;
  LatenessMonitor lateness_;
  RecoveryMeter recovery_;
  StepTuning tuning_;
  bool program_has_ended_ = false;
  Step step_;             // of the program
  absl::Status failure_;  // why the worker is in no group
};

}  // namespace covey::worker
