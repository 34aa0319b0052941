// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_pipeline.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/transitions.h"
#include "worker/hybrid/bucket_consensus.h"

namespace covey::worker {
namespace {

using State = BucketPipeline::State;

constexpr Transition<State> kLegal[] = {
    {State::kIdle, State::kRunning},          {State::kRunning, State::kIdle},
    {State::kIdle, State::kInterrupted},      {State::kRunning, State::kInterrupted},
    {State::kInterrupted, State::kRejoining}, {State::kRejoining, State::kInterrupted},
    {State::kInterrupted, State::kIdle},      {State::kRejoining, State::kIdle},
    {State::kIdle, State::kRejoining},        {State::kIdle, State::kClosed},
    {State::kRunning, State::kClosed},        {State::kInterrupted, State::kClosed},
    {State::kRejoining, State::kClosed},
};

}  // namespace

bool BucketPipeline::IsLegal(State from, State to) { return IsLegalTransition(kLegal, from, to); }

BucketPipeline::BucketPipeline(Communicator& group, ServerLink& link, Config config,
                               Environment environment)
    : environment_(std::move(environment)),
      lag_(config.lag),
      stages_{.group = group,
              .link = link,
              .number = config.number,
              .name = std::move(config.name),
              .gradient = config.gradient,
              .value_format = config.value_format,
              .combine = config.combine,
              .bucket = std::move(config.bucket),
              .update = std::move(config.update),
              .clip = std::move(config.clip),
              .noise = std::move(config.noise),
              .memory = std::move(config.memory),
              .mean = config.mean},
      buffers_(stages_.bucket,
               {.weighted = config.combine == Combine::kMean,
                .error_feedback = config.gradient.error_feedback},
               [&link](const Buffer& memory) { link.ReleaseGradient(memory); }),
      requests_(stages_.bucket.pieces.size()),
      rate_factors_(stages_.bucket.pieces.size(), 1.0),
      begun_(config.step),
      finished_(config.step),
      pulls_(config.pulls),
      recovery_donor_(config.recovery_donor) {}

void BucketPipeline::Enter(State to) {
  if (to == state_) return;
  COVEY_CHECK(IsLegal(state_, to));
  state_ = to;
}

void BucketPipeline::Submit(absl::Time now, Step step, TensorRequest request, Outbox& outbox) {
  if (request.step != nullptr) *request.step = step;
  if (step > begun_) {
    requests_.AddSubmission(step, std::move(request));
  } else {
    requests_.AddDelivery(std::move(request));
  }
  Advance(now, outbox);
}

void BucketPipeline::Pull(absl::Time now, TensorRequest request, Outbox& outbox) {
  requests_.AddPull(std::move(request));
  Advance(now, outbox);
}

void BucketPipeline::Flush(absl::Time now, TensorRequest request, Outbox& outbox) {
  // Where the program has lent its own memory, the newest values are there.
  if (lag_ == 0 && stages_.bucket.pieces.size() == 1) {
    return request.done(now, stages_.group.failure(), outbox);
  }
  requests_.AddDelivery(std::move(request));
  Advance(now, outbox);
}

void BucketPipeline::Advance(absl::Time now, Outbox& outbox) {
  if (run_ || state_ == State::kRejoining) return;
  Deliver(now, requests_.TakeDeliveries(), outbox);
  if (state_ != State::kIdle) return;  // Interrupted, or a callback has begun something.
  if (waiting()) stages_.server_times.End(now);
  if (redo_) {
    Redo(now, outbox);
  } else if (requests_.HasPull() && owed_pulls_ > 0) {
    --owed_pulls_;
    Deliver(now, requests_.TakePulls(), outbox);
    Advance(now, outbox);
  } else if (requests_.HasPull() && MayBegin(finished_)) {
    std::vector<TensorRequest> pulls = requests_.TakePulls();
    const absl::Time deadline = pulls.front().deadline;
    BeginPull(now, std::move(pulls), deadline, Step(), outbox);
  } else if (requests_.HasSubmitted(begun_.Next()) && MayBegin(begun_.Next())) {
    BeginStep(now, outbox);
  }
}

std::shared_ptr<BucketRun> BucketPipeline::NewRun(BucketTask task) {
  COVEY_CHECK(!run_);
  Enter(State::kRunning);
  run_ = std::make_shared<BucketRun>(
      stages_, weak_from_this(), std::move(task),
      [this](absl::Time now, Outbox& outbox) { RunEnded(now, outbox); });
  return run_;
}

void BucketPipeline::StartStep(absl::Time now, BucketTask task, BucketBuffers::StepInput input,
                               Outbox& outbox) {
  NewRun(std::move(task))->StartStep(now, std::move(input), outbox);
  ReportChange(now, 0, outbox);
}

void BucketPipeline::PlaceValues(BucketTask& task) {
  // A mean that other members may need stays here when the program has it.
  const bool in_program =
      !stages_.mean && lag_ == 0 && stages_.bucket.pieces.size() == 1 && !task.requests.empty();
  task.values_in_bucket = !in_program;
  task.values = in_program ? task.requests.front().values : buffers_.values();
}

void BucketPipeline::NoteRateFactors(const std::vector<TensorRequest>& requests) {
  for (const TensorRequest& request : requests) {
    for (size_t p = 0; p < rate_factors_.size(); ++p) {
      if (stages_.bucket.pieces[p].tensor == request.tensor) {
        rate_factors_[p] = request.rate_factor;
      }
    }
  }
}

void BucketPipeline::StepAside(absl::Time now, absl::Time deadline, Outbox& outbox) {
  COVEY_CHECK(idle());
  begun_ = begun_.Next();
  requests_.DropSubmissions(begun_);
  BucketTask task{
      .step = begun_, .steps_aside = true, .rate_factors = rate_factors_, .deadline = deadline};
  PlaceValues(task);
  StartStep(now, std::move(task), buffers_.BeginStep({}), outbox);
}

void BucketPipeline::BeginStep(absl::Time now, Outbox& outbox) {
  begun_ = begun_.Next();
  BucketTask task{.step = begun_, .requests = requests_.TakeSubmissions()};
  // The submissions may have been renumbered.
  for (const TensorRequest& request : task.requests) {
    if (request.step != nullptr) *request.step = begun_;
  }
  NoteRateFactors(task.requests);
  task.samples = task.requests.front().samples;
  task.rate_factors = rate_factors_;
  task.deadline = task.requests.front().deadline;
  PlaceValues(task);
  BucketBuffers::StepInput input = buffers_.BeginStep(task.requests);
  if (lag_ == 0) return StartStep(now, std::move(task), std::move(input), outbox);
  // The program has its memory back, and the sum is taken in place.
  buffers_.KeepGradient();
  const std::vector<TensorRequest> requests = std::exchange(task.requests, {});
  const std::shared_ptr<BucketRun> run = NewRun(std::move(task));
  Deliver(now, requests, outbox);
  run->StartStep(now, std::move(input), outbox);
  ReportChange(now, 0, outbox);
}

void BucketPipeline::Redo(absl::Time now, Outbox& outbox) {
  BucketTask task = *std::exchange(redo_, std::nullopt);
  // A step that lags has given the program its requests back.
  BucketBuffers::StepInput input =
      buffers_.RepeatStep(task.requests, task.steps_aside ? BucketBuffers::Without::kZero
                                                          : BucketBuffers::Without::kKept);
  StartStep(now, std::move(task), std::move(input), outbox);
}

void BucketPipeline::BeginPull(absl::Time now, std::vector<TensorRequest> requests,
                               absl::Time deadline, Step read, Outbox& outbox) {
  ++pulls_;
  NoteRateFactors(requests);
  BucketTask task{.kind = BucketTask::Kind::kPull,
                  .step = read,
                  .requests = std::move(requests),
                  .rate_factors = rate_factors_,
                  .deadline = deadline};
  PlaceValues(task);
  NewRun(std::move(task))
      ->StartPull(now, pulls_, std::exchange(recovery_donor_, std::nullopt), outbox);
}

void BucketPipeline::RunEnded(absl::Time now, Outbox& outbox) {
  if (HasStoppedRun()) return FinishRejoin(now, outbox);
  const std::shared_ptr<BucketRun> run = std::exchange(run_, nullptr);
  if (state_ == State::kRunning) Enter(State::kIdle);
  const bool ok = run->status().ok();
  if (run->is_step() && ok) {
    finished_ = begun_;
    samples_ = run->samples();
  }
  if (run->task().values_in_bucket && ok) {
    Deliver(now, run->task().requests, outbox);
  } else {
    WriteServerTimes(stages_.server_times, run->task().requests);
    EndAll(now, run->task().requests, run->status(), outbox);
  }
  if (ok && !run->is_step()) TakeMean(now, outbox);
  if (ok) ReportChange(now, run->agreed_plan_epoch(), outbox);
  if (state_ == State::kRejoining) {
    FinishRejoin(now, outbox);
  } else {
    Advance(now, outbox);
  }
}

void BucketPipeline::TakeMean(absl::Time now, Outbox& outbox) {
  if (!stages_.mean || !redo_ || stages_.mean->step() < redo_->step) return;
  finished_ = redo_->step;
  Deliver(now, std::exchange(redo_, std::nullopt)->requests, outbox);
}

void BucketPipeline::Deliver(absl::Time now, const std::vector<TensorRequest>& requests,
                             Outbox& outbox) {
  WriteServerTimes(stages_.server_times, requests);
  for (const TensorRequest& request : requests) {
    if (stages_.group.failure().ok()) buffers_.CopyValuesTo(request);
    if (stages_.mean && request.mean_samples != nullptr) {
      *request.mean_samples = stages_.mean->samples();
    }
    if (request.done) request.done(now, stages_.group.failure(), outbox);
  }
}

void BucketPipeline::FailWaiting(absl::Time now, const absl::Status& status, Outbox& outbox) {
  std::vector<TensorRequest> interrupted;
  if (redo_) interrupted = std::exchange(redo_, std::nullopt)->requests;
  if (HasStoppedRun()) {
    const std::shared_ptr<BucketRun> run = std::exchange(run_, nullptr);
    const std::vector<TensorRequest>& requests = run->task().requests;
    interrupted.insert(interrupted.end(), requests.begin(), requests.end());
  }
  EndAll(now, interrupted, status, outbox);
  requests_.FailAll(now, status, outbox);
}

absl::Time BucketPipeline::Due() const {
  absl::Time due = requests_.Due();
  // A run that is not interrupted ends with its collectives, by their deadlines.
  if (run_ && run_->interrupted()) due = std::min(due, SoonestDeadline(run_->task().requests));
  if (redo_) due = std::min(due, SoonestDeadline(redo_->requests));
  return due;
}

void BucketPipeline::Adopt(Bucket bucket, std::unique_ptr<PartUpdate> update, Step step) {
  COVEY_CHECK(idle() && bucket.element_count == stages_.bucket.element_count);
  Enter(State::kIdle);
  if (requests_.HasSubmissions()) requests_.RenumberSubmissions(step.Next());
  stages_.bucket = std::move(bucket);
  stages_.update = std::move(update);
  if (stages_.memory) stages_.memory->Clear();
  recovery_donor_.reset();
  begun_ = step;
  finished_ = step;
  pulls_ = 0;
}

void BucketPipeline::PullForNewGeneration(absl::Time now, absl::Time deadline, Outbox& outbox) {
  COVEY_CHECK(idle());
  BeginPull(now, {}, deadline, Step(), outbox);
}

void BucketPipeline::Interrupt(absl::Time now) {
  pending_rejoin_.reset();
  stages_.server_times.End(now);
  Enter(State::kInterrupted);
  if (run_) run_->Interrupt();
}

void BucketPipeline::Rejoin(absl::Time now, Rejoining rejoining, Outbox& outbox) {
  Enter(State::kRejoining);
  pending_rejoin_ = std::move(rejoining);
  FinishRejoin(now, outbox);
}

void BucketPipeline::FinishRejoin(absl::Time now, Outbox& outbox) {
  if (state_ != State::kRejoining || (run_ && !HasStoppedRun())) return;
  Enter(State::kIdle);
  Rejoining rejoining = *std::exchange(pending_rejoin_, std::nullopt);
  // Until then the step counts as not finished here, in case all members that have its mean die.
  const bool waits_for_mean = stages_.mean && rejoining.pull && finished() < rejoining.finished;
  stages_.bucket = std::move(rejoining.bucket);
  stages_.update = std::move(rejoining.update);
  pulls_ = 0;
  owed_pulls_ = rejoining.owed_pulls;
  recovery_donor_ = rejoining.recovery_donor;
  std::optional<RoundMemory>& memory = stages_.memory;
  if (memory && (!recovery_donor_ || rejoining.moved)) memory->Clear();
  // In case all members that have finished these steps die.
  if (rounds() != nullptr) memory->SkipAll(finished_, rejoining.finished);
  std::vector<TensorRequest> over;
  if (run_) {
    const std::shared_ptr<BucketRun> stopped = std::exchange(run_, nullptr);
    if (stopped->is_step()) {
      redo_ = std::move(stopped->task());
    } else {
      over = std::move(stopped->task().requests);
    }
  }
  const RejoinPlan plan = PlanRejoin({.begun = begun_,
                                      .interrupted_step = redo_.has_value(),
                                      .submitted = requests_.submitted_step(),
                                      .finished = rejoining.finished,
                                      .program_at = rejoining.program_at,
                                      .agreed = rejoining.agreed});
  if (redo_ && !plan.redo && !waits_for_mean) {
    over.insert(over.end(), redo_->requests.begin(), redo_->requests.end());
    redo_.reset();
  }
  begun_ = plan.begun;
  finished_ = waits_for_mean ? finished() : rejoining.finished;
  requests_.RenumberSubmissions(plan.submitted);
  if (plan.submitted <= begun_) {
    for (TensorRequest& request : requests_.TakeSubmissions()) over.push_back(std::move(request));
  }
  requests_.PrependDeliveries(over);
  if (rejoining.pull) {
    BeginPull(now, {}, rejoining.deadline, rejoining.finished, outbox);
  } else {
    Advance(now, outbox);
  }
}

void BucketPipeline::GiveUp(absl::Time now, const absl::Status& status, Outbox& outbox) {
  pending_rejoin_.reset();
  Enter(State::kClosed);
  FailWaiting(now, status, outbox);
  if (run_) run_->GiveUp(status);
}

}  // namespace covey::worker
