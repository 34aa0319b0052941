// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/tensor/wire_format.h"
#include "worker/group/communicator.h"
#include "worker/hybrid/bucket_buffers.h"
#include "worker/hybrid/gradient_clip.h"
#include "worker/hybrid/noise_meter.h"
#include "worker/hybrid/server_times.h"
#include "worker/hybrid/step_route.h"
#include "worker/hybrid/tensor_request.h"
#include "worker/hybrid_options.h"
#include "worker/layout/gradient_format.h"
#include "worker/layout/model_layout.h"
#include "worker/update/mean_memory.h"
#include "worker/update/part_update.h"
#include "worker/update/round_memory.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// What all runs of one bucket work with. The update and the bucket's parts are those of the group's
// present generation. They and the route change only while no run is in flight.
struct BucketStages {
  Communicator& group;
  ServerLink& link;
  // Numbers the collectives' streams.
  uint32_t number = 0;
  // "'hidden/weight'", for errors.
  std::string name;
  GradientFormat gradient;
  // The wire format of what the members' updates have made, in the all-gather.
  WireFormat value_format = WireFormat::kFloat32;
  Combine combine = Combine::kMean;
  StepRoute route;
  Bucket bucket;
  std::unique_ptr<PartUpdate> update;
  // Null: gradients are not clipped.
  std::shared_ptr<GradientClip> clip;
  // Null: norms of the members' gradients are not taken.
  std::shared_ptr<NoiseMeter> noise;
  // What is known of the rounds of LOCAL tables.
  std::optional<RoundMemory> memory;
  // Where the program updates: whose mean the bucket's values are.
  std::optional<MeanMemory> mean;
  // When runs waited for servers: in kUpdating.
  ServerTimes server_times;
};

// What one run is to do, and what of it stays when it is interrupted.
struct BucketTask {
  enum class Kind { kStep, kPull };

  Kind kind = Kind::kStep;
  // Of a step: its number. Of a pull: what the values must hold; 0 = any values will do.
  Step step;
  // One request per tensor. Empty: only the other members get the values.
  std::vector<TensorRequest> requests;
  // Where the values go, and whether that is the bucket's memory or the program's.
  std::span<float> values;
  bool values_in_bucket = false;
  // Of a step: this member steps aside, with a gradient of zero.
  bool steps_aside = false;
  uint64_t samples = 0;
  std::vector<double> rate_factors;  // as PartStep
  absl::Time deadline = absl::InfiniteFuture();
};

// One run of a bucket through its stages, from the first collective to the last callback:
//
//   step           pull    pull after a loss, LOCAL tables or where the program updates
//    │              │           │
//    ▼              │           ▼
//   kReducing       │      kRestoring   the recovery donor broadcasts the state of the rounds
//    │ sum arrived  │           │ state arrived
//    ▼              │           │
//   kClipping       │           │       only where gradients are clipped: until the norm is known
//    │ norm arrived │           │
//    ▼              ▼           │
//   kUpdating ◀─────┴───────────┘       PartUpdate::Apply or Fetch of this member's own part
//    │ contributed
//    ▼
//   kGathering                          other members' parts arrive
//    │ values arrived
//    ▼
//   kGathered ─── Interrupt ──▶ kGatheredInterrupted      from kRestoring: the donor's mean
//    │ last callback                │ last callback
//    ▼                              ▼
//   kOver ◀─────────────────────────┘
//
//   kRestoring, kReducing, kClipping, kUpdating, kGathering ─── Interrupt ──▶ kInterrupted
//   kInterrupted ── last callback ──▶ kStopped    the task may be done again, by another run
//   each of them but kStopped and kOver ── GiveUp ──▶ kGivenUp ── last callback ──▶ kOver
//
// Invariants:
// 1. Each stage that has started ends with one callback; kStopped and kOver come with the last one,
//    and `ended` is called then.
// 2. From Start to the last callback the task's memory and the stages are in use.
// 3. This member contributes its part at most once, and never after Interrupt or GiveUp.
// 4. A failure does not change the state: the group's failure ends every stage, and status() is the
//    first error.
//
// Actor-confined. Deterministic.
class BucketRun : public std::enable_shared_from_this<BucketRun> {
 public:
  enum class State {
    kNew,
    kRestoring,
    kReducing,
    kClipping,
    kUpdating,
    kGathering,
    kGathered,
    kInterrupted,
    kGatheredInterrupted,
    kGivenUp,
    kStopped,
    kOver,
  };
  static bool IsLegal(State from, State to);

  // `owner` keeps `stages` and what `ended` uses alive while stages are under way.
  BucketRun(BucketStages& stages, std::weak_ptr<const void> owner, BucketTask task,
            std::function<void(absl::Time, Outbox&)> ended);

  // Each starts the run, once. `pull` counts the group's pulls. `donor`: the rank that first tells
  // the other members what it knows of LOCAL rounds; where the program updates, the one whose mean
  // gradient all members take.
  void StartStep(absl::Time now, BucketBuffers::StepInput input, Outbox& outbox);
  void StartPull(absl::Time now, uint64_t pull, std::optional<uint32_t> donor, Outbox& outbox);

  // The group leaves its generation: unless the values are there, the run cannot end well any more.
  void Interrupt();
  // There is no next generation to do the task in: the run ends with `status`.
  void GiveUp(const absl::Status& status);

  State state() const { return state_; }
  bool is_step() const { return task_.kind == BucketTask::Kind::kStep; }
  bool has_values() const {
    return state_ == State::kGathered || state_ == State::kGatheredInterrupted;
  }
  bool interrupted() const {
    return state_ == State::kInterrupted || state_ == State::kGatheredInterrupted ||
           state_ == State::kStopped;
  }
  BucketTask& task() { return task_; }
  const BucketTask& task() const { return task_; }
  // The first error.
  const absl::Status& status() const { return status_; }
  // Of a step that is over: as CollectiveResult::agreed_plan_epoch. An interrupted generation's
  // knowledge of plans ends with it: 0.
  uint64_t agreed_plan_epoch() const { return agreed_plan_epoch_; }
  // Once it has values: training examples of all members behind them.
  uint64_t samples() const { return samples_; }

 private:
  void Enter(State to);
  // Keeps this run and its owner alive.
  std::shared_ptr<BucketRun> Pin();
  void StartGather(absl::Time now, const CollectiveId& id, Outbox& outbox);
  void StartRestore(absl::Time now, uint64_t pull, uint32_t donor, Outbox& outbox);
  // The donor has the mean gradient of the task's step, and gives it to the other members.
  void StartMeanBroadcast(absl::Time now, uint64_t pull, uint32_t donor, Outbox& outbox);
  // This member's part has been summed.
  void MeasureNoise(absl::Time now, Outbox& outbox);
  // The sum is this member's own again: scales it by the group's norm, and updates the part.
  void ClipPart(absl::Time now, const CollectiveResult& sum, Outbox& outbox);
  // `sum`: of the reduce-scatter; a pull has none.
  void UpdatePart(absl::Time now, const CollectiveResult& sum, Outbox& outbox);
  void ValuesArrived(const CollectiveResult& gathered);
  void StageEnded(absl::Time now, const absl::Status& status, Outbox& outbox);

  BucketStages& stages_;
  const std::weak_ptr<const void> owner_;
  BucketTask task_;
  const std::function<void(absl::Time, Outbox&)> ended_;

  State state_ = State::kNew;
  BucketBuffers::StepInput input_;
  double own_square_ = 0;  // of this member's gradient times its samples, for the noise
  CollectiveId gather_;
  bool restores_ = false;  // the donor's state instead of what the pull brings
  int stages_under_way_ = 0;
  uint64_t agreed_plan_epoch_ = 0;
  uint64_t samples_ = 0;
  absl::Status status_;
};

}  // namespace covey::worker
