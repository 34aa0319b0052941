// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/tensor/wire_format.h"
#include "worker/group/communicator.h"
#include "worker/hybrid/bucket_buffers.h"
#include "worker/hybrid/bucket_requests.h"
#include "worker/hybrid/bucket_run.h"
#include "worker/hybrid/tensor_request.h"
#include "worker/layout/gradient_format.h"
#include "worker/layout/model_layout.h"
#include "worker/update/mean_memory.h"
#include "worker/update/part_update.h"
#include "worker/update/round_memory.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// One bucket's steps and pulls, one after the other. It decides what runs next; a run does it
// (bucket_run.h):
//
//   Submit of each ─▶ scaled by ─▶ reduce-scatter ─▶ update of own ─▶ all-gather ─▶ values of each
//   tensor            samples                       part (PartUpdate)                tensor: done
//   Pull of each ───────────────────────────────────▶ fetch own part ─┘
//
// A step begins when the last of the bucket's tensors is submitted and the environment allows it.
// The gradients are summed in the bucket's memory, so that those of the program do not change. The
// values of a single tensor are gathered in the program's memory. Fused tensors, and steps that
// lag, use the bucket's.
//
// With lag 1 a submission is done as soon as its step begins, with the values of the step before.
// The next submission waits until this step is over. Flush gives the newest values.
//
// Stepping aside: StepAside begins the next step for a program that is late, with a gradient of
// zero and no samples. When the program submits for that step later, the submission is dropped. It
// is done with the newest values once they are there.
//
// Recovery: Interrupt stops the run when the group loses a member in the middle of a step. What was
// sent and pushed stays so. In the next generation Rejoin goes on from the step that the members
// agree on. A step that some member has finished is over: its values are pulled. A step that no
// member has finished is done again with the kept gradients. Rounds of LOCAL tables are restored
// from one member that has finished the step (round_memory.h), without asking a server.
// Where the program updates, a member that has the step's mean gives it to the others
// (mean_memory.h). They keep what the step is done again from until they have it.
//
//                begin                        Interrupt
//     kIdle ────────────▶ kRunning ───────────────────────▶ kInterrupted ◀────┐
//      ▲  ▲                  │                               │   ▲            │
//      │  └──── it is over ──┘         Interrupt (kIdle) ────┼───┘            │ Interrupt
//      │                                              Rejoin │                │
//      │                                                     ▼                │
//      └──────── the interrupted run has ended ────────── kRejoining ─────────┘
//
//     kInterrupted ── Adopt, without a run ──▶ kIdle        each ── GiveUp ──▶ kClosed
//
//     kIdle ── Rejoin ──▶ kRejoining: this member came through a planned change, and another one
//     was interrupted on the way, so that all members agree as after a loss.
//
// Invariants:
// 1. kRunning: there is a run, and it is not interrupted. kIdle: there is none. kRejoining: there
//    is an interrupted one, until its last frame and answer are back.
// 2. A step that is to be done again comes before everything else that waits.
// 3. All members call Pull and Rejoin with the same arguments, so all of them begin the same runs.
//
// Memory: BucketBuffers, and the round memory of LOCAL tables. Actor-confined. Deterministic. Lives
// until its last callback.
class BucketPipeline : public std::enable_shared_from_this<BucketPipeline> {
 public:
  enum class State { kIdle, kRunning, kInterrupted, kRejoining, kClosed };
  static bool IsLegal(State from, State to);

  struct Config {
    Bucket bucket;
    // Stream numbers follow from it.
    uint32_t number = 0;
    // "'hidden/weight'", for errors.
    std::string name;
    GradientFormat gradient;
    WireFormat value_format = WireFormat::kFloat32;
    uint32_t lag = 0;
    Combine combine = Combine::kMean;
    std::unique_ptr<PartUpdate> update;
    // Null: gradients are not clipped.
    std::shared_ptr<GradientClip> clip;
    // Null: norms of the members' gradients are not taken.
    std::shared_ptr<NoiseMeter> noise;
    // Of LOCAL tables.
    std::optional<RoundMemory> memory;
    // Where the program updates.
    std::optional<MeanMemory> mean;
    // With the first pull, all members restore what this rank knows of LOCAL rounds.
    std::optional<uint32_t> recovery_donor;
    // The newest step that is over, and the pulls that have begun.
    Step step;
    uint64_t pulls = 0;
  };
  // What the owner decides and is told. The owner outlives the pipeline, or calls Retire first.
  struct Environment {
    // Whether a bucket may begin a step, or, with the step it has finished, a pull.
    std::function<bool(uint32_t number, Step step)> may_begin;
    // The bucket has begun or finished a step. `agreed_plan_epoch`: as CollectiveResult, of the
    // step that is over.
    std::function<void(absl::Time, uint32_t number, uint64_t agreed_plan_epoch, Outbox&)> changed;
  };

  // `group` and `link` outlive the pipeline.
  BucketPipeline(Communicator& group, ServerLink& link, Config config, Environment environment);

  // The gradient does not count when the group has gone on without it.
  void Submit(absl::Time now, Step step, TensorRequest request, Outbox& outbox);
  void Pull(absl::Time now, TensorRequest request, Outbox& outbox);
  void Flush(absl::Time now, TensorRequest request, Outbox& outbox);
  // Precondition: idle().
  void StepAside(absl::Time now, absl::Time deadline, Outbox& outbox);

  // Begins what waits and may begin.
  void Advance(absl::Time now, Outbox& outbox);
  // Ends what has not begun.
  void FailWaiting(absl::Time now, const absl::Status& status, Outbox& outbox);
  // Takes the bucket over into a new generation of the group, which goes on after `step`. Waiting
  // submissions are for the step after it. Precondition: idle(), and nothing may begin yet.
  void Adopt(Bucket bucket, std::unique_ptr<PartUpdate> update, Step step);
  // Once, when all buckets have been adopted: all members pull, because some may be new. The
  // program's values do not change. Precondition: idle().
  void PullForNewGeneration(absl::Time now, absl::Time deadline, Outbox& outbox);

  // The group leaves its generation: a run cannot end well any more, unless its values are there.
  void Interrupt(absl::Time now);
  // How the bucket goes on in the next generation.
  struct Rejoining {
    Bucket bucket;
    std::unique_ptr<PartUpdate> update;
    // The newest step that any member has finished.
    Step finished;
    // This member comes from another group, where it leaves what it knows of LOCAL rounds.
    bool moved = false;
    // As RejoinInput.
    Step program_at;
    Step agreed;
    // All members pull first.
    bool pull = false;
    // Pulls that other members have begun and this program has yet to ask for. All members have
    // pulled since, so these are answered with the newest values.
    uint64_t owed_pulls = 0;
    // With that pull, all members restore what this rank knows of LOCAL rounds.
    std::optional<uint32_t> recovery_donor;
    // Of the pull.
    absl::Time deadline;
  };
  // Once after Interrupt, or idle; with the same bucket.
  void Rejoin(absl::Time now, Rejoining rejoining, Outbox& outbox);
  // There is no next generation: ends what was interrupted and what has not begun.
  void GiveUp(absl::Time now, const absl::Status& status, Outbox& outbox);

  // The owner goes; what is under way ends by itself.
  void Retire() { environment_ = Environment(); }
  // Submissions that have not begun, and their step, for another pipeline to go on with.
  std::vector<TensorRequest> TakeSubmissions() { return requests_.TakeSubmissions(); }
  Step submitted_step() const { return requests_.submitted_step(); }

  State state() const { return state_; }
  // The run in flight; null when there is none.
  const BucketRun* run() const { return run_.get(); }
  // Nothing is under way.
  bool idle() const { return !run_ && !redo_ && state_ != State::kRejoining; }
  // The newest step that has begun here, and the newest that is over.
  Step begun() const { return begun_; }
  Step finished() const {
    if (run_ && run_->is_step() && run_->has_values()) return begun_;
    return stages_.mean ? std::max(finished_, stages_.mean->step()) : finished_;
  }
  // The newest step that is over, with nothing of it under way.
  Step ended() const { return finished_; }
  // A pull is under way, and its values are not there.
  bool pulling() const { return run_ && !run_->is_step() && !run_->has_values(); }
  // The program is at `step` or beyond, and will not submit the step to begin next.
  bool IsBehind(Step step) const { return begun_.Next() < step && !HasSubmitted(begun_.Next()); }
  // The program has submitted all of `step`, which waits.
  bool HasSubmitted(Step step) const { return requests_.HasSubmitted(step); }
  // Something waits that has not begun, or was interrupted.
  bool waiting() const { return !requests_.empty() || redo_ || HasStoppedRun(); }
  // The soonest deadline of what waits for the group to meet, or for another step or pull to be
  // over.
  absl::Time Due() const;
  const Bucket& bucket() const { return stages_.bucket; }
  const std::string& name() const { return stages_.name; }
  // Of a step's gradients.
  WireFormat FormatAt(Step step) const { return stages_.gradient.At(step); }
  // How steps and pulls travel from now on; the default one at first. Precondition: nothing is
  // under way.
  void SetRoute(const StepRoute& route) { stages_.route = route; }
  const StepRoute& route() const { return stages_.route; }
  // Training examples of all members behind the newest step that is over here.
  uint64_t samples() const { return samples_; }
  // Pulls that have begun in this generation.
  uint64_t pulls() const { return pulls_; }
  // What is known of LOCAL rounds that a member of the next generation may need; null: nothing.
  const RoundMemory* rounds() const {
    return stages_.memory && !stages_.memory->empty() ? &*stages_.memory : nullptr;
  }
  // Where the program updates; null: it does not.
  const MeanMemory* mean() const { return stages_.mean ? &*stages_.mean : nullptr; }

 private:
  void Enter(State to);
  bool MayBegin(Step step) const {
    return !environment_.may_begin || environment_.may_begin(stages_.number, step);
  }
  void ReportChange(absl::Time now, uint64_t agreed_plan_epoch, Outbox& outbox) {
    if (environment_.changed) environment_.changed(now, stages_.number, agreed_plan_epoch, outbox);
  }
  // The run was interrupted, and no stage refers to its memory any more.
  bool HasStoppedRun() const { return run_ && run_->state() == BucketRun::State::kStopped; }
  // The program's memory where that will do, the bucket's elsewhere.
  void PlaceValues(BucketTask& task);

  void NoteRateFactors(const std::vector<TensorRequest>& requests);
  void BeginStep(absl::Time now, Outbox& outbox);
  void BeginPull(absl::Time now, std::vector<TensorRequest> requests, absl::Time deadline,
                 Step read, Outbox& outbox);
  void Redo(absl::Time now, Outbox& outbox);
  void StartStep(absl::Time now, BucketTask task, BucketBuffers::StepInput input, Outbox& outbox);
  std::shared_ptr<BucketRun> NewRun(BucketTask task);
  void RunEnded(absl::Time now, Outbox& outbox);
  // Another member has given the mean of the step that was to be done again.
  void TakeMean(absl::Time now, Outbox& outbox);
  // When the interrupted run has ended.
  void FinishRejoin(absl::Time now, Outbox& outbox);
  // Ends each with the newest values.
  void Deliver(absl::Time now, const std::vector<TensorRequest>& requests, Outbox& outbox);

  Environment environment_;
  const uint32_t lag_;
  BucketStages stages_;
  BucketBuffers buffers_;
  BucketRequests requests_;
  std::vector<double> rate_factors_;  // by piece, of the newest requests that began

  State state_ = State::kIdle;
  std::shared_ptr<BucketRun> run_;
  std::optional<BucketTask> redo_;           // an interrupted step, to be done again
  std::optional<Rejoining> pending_rejoin_;  // in kRejoining
  Step begun_;
  Step finished_;
  uint64_t samples_ = 0;
  uint64_t pulls_ = 0;
  uint64_t owed_pulls_ = 0;
  std::optional<uint32_t> recovery_donor_;  // for the next pull
};

}  // namespace covey::worker
