// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/generation_change.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/base/transitions.h"

namespace covey::worker {
namespace {

using State = GenerationChange::State;

constexpr Transition<State> kLegal[] = {
    {State::kNoModel, State::kRunning},
    {State::kRunning, State::kLastStep},
    {State::kRunning, State::kChanging},
    {State::kLastStep, State::kChanging},
    {State::kChanging, State::kRunning},
    // The program has set another model.
    {State::kLastStep, State::kRunning},
    {State::kLeft, State::kRunning},
    {State::kNoModel, State::kLeft},
    {State::kRunning, State::kLeft},
    {State::kLastStep, State::kLeft},
    {State::kChanging, State::kLeft},
};

// What members that update have cannot be told to others, nor done again.
absl::Status CannotGoOn(absl::string_view what, Step step) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " after step ", step.value(),
                   ", and distributed synchronization keeps values and optimizer state on its ",
                   "members alone; start the run again, from a snapshot if there is one, or use ",
                   "Synchronization::kCentralized, which goes on"));
}

}  // namespace

bool GenerationChange::IsLegal(State from, State to) { return IsLegalTransition(kLegal, from, to); }

State GenerationChange::state() const {
  const bool has_round = state_ == State::kRunning || state_ == State::kLastStep;
  return has_round && !group_.IsIn(round_) ? State::kChanging : state_;
}

void GenerationChange::Enter(State to) {
  COVEY_CHECK(to == state() || IsLegal(state(), to));
  state_ = to;
}

void GenerationChange::RunIn(const GroupRound& round) {
  Enter(State::kRunning);
  round_ = round;
}

bool GenerationChange::MembersUpdateAll() const {
  return model_.definition().options.synchronization == Synchronization::kDistributed;
}

MemberProgress GenerationChange::Progress() const {
  MemberProgress progress = model_.Progress();
  if (HasMoved() && !model_.ProgramUpdates()) {
    for (BucketProgress& bucket : progress.buckets) bucket.learned.reset();
    progress.norm.reset();
  }
  return progress;
}

bool GenerationChange::MayBegin(uint32_t bucket, Step step) const {
  if (state() == State::kChanging) return false;
  const auto& pipelines = model_.pipelines();
  if (state_ == State::kLastStep) {
    const bool is_pull = step == pipelines[bucket]->finished();
    if (step > last_step_ || is_pull) return false;
  }
  if (bucket == 0) return true;
  // The first bucket's gather may tell that the step before was the last one.
  const BucketPipeline& first = *pipelines[0];
  return first.begun().Next() >= step &&
         (!group_.change_pending() || first.finished().Next() >= step);
}

void GenerationChange::EndAfter(absl::Time now, Step step, Outbox& outbox) {
  if (state() != State::kRunning) return;
  Enter(State::kLastStep);
  last_step_ = step;
  if (!MembersUpdateAll()) return;
  group_.Abort(
      now, CannotGoOn(absl::StrCat("group ", group_.id().value(), " changes its members"), step),
      outbox);
}

bool GenerationChange::MayReform() const {
  if (state() != State::kLastStep || !group_.failure().ok()) return false;
  if (group_.collectives() > 0 || !group_.change_pending()) return false;
  const auto& pipelines = model_.pipelines();
  return std::all_of(pipelines.begin(), pipelines.end(), [this](const auto& pipeline) {
    return pipeline->idle() && pipeline->begun() == last_step_;
  });
}

absl::Status GenerationChange::Reform(absl::Time now, Outbox& outbox) {
  last_begun_ = last_step_;
  const absl::Status status = group_.Reform(now, last_step_.value(), outbox);
  if (!absl::IsFailedPrecondition(status)) return status;
  return absl::OkStatus();  // Something else is under way: later.
}

bool GenerationChange::Interrupt(absl::Time now, Outbox& outbox) {
  if (MembersUpdateAll()) {
    group_.Abort(now, CannotGoOn(group_.interruption(), model_.finished()), outbox);
    return false;
  }
  last_begun_ = model_.begun();
  for (const auto& pipeline : model_.pipelines()) pipeline->Interrupt(now);
  return true;
}

GenerationChange::NextGeneration GenerationChange::Agree() const {
  COVEY_CHECK(state() == State::kChanging);
  NextGeneration next{
      .planned = group_.recovery_state().empty(), .from = last_begun_, .moved = HasMoved()};
  if (next.planned) {
    next.to = Step(group_.agreed_step());
    return next;
  }
  Step agreed;
  for (size_t bucket = 0; bucket < model_.pipelines().size(); ++bucket) {
    next.consensus.push_back(model_.ConsensusOn(bucket));
    agreed = std::max(agreed, next.consensus[bucket].finished);
  }
  next.to = std::max(agreed, last_begun_);
  return next;
}

absl::Status GenerationChange::GoOn(absl::Time now, std::shared_ptr<const ClusterView> view,
                                    const NextGeneration& next, Outbox& outbox) {
  const GroupRound round = group_.round();
  absl::Status status = model_.Divide(std::move(view));
  if (status.ok()) {
    status = next.planned ? Adopt(now, next.to, outbox) : Rejoin(now, next, outbox);
  }
  RunIn(round);
  return status;
}

bool GenerationChange::HasToPull(size_t bucket, const BucketConsensus& consensus) const {
  if (model_.ProgramUpdates() && Planted(PlantedBug::kMeanNotGiven)) return false;
  // Where the program updates, the servers have the first values alone: for members that are new
  // before the first step, or were reading them.
  const bool has_source = !model_.ProgramUpdates() || consensus.finished == Step() ||
                          consensus.pull_open || consensus.recovery_donor.has_value();
  // The member that answers for a part now has to fetch it, if members update it.
  return (!consensus.all_equal && has_source) || model_.MembersUpdate(bucket);
}

absl::Status GenerationChange::Adopt(absl::Time now, Step agreed, Outbox& outbox) {
  const auto& pipelines = model_.pipelines();
  model_.BeginGeneration(std::vector<Step>(pipelines.size(), agreed), std::nullopt);
  for (size_t b = 0; b < pipelines.size(); ++b) {
    COVEY_ASSIGN_OR_RETURN(auto update, model_.MakeUpdateOf(b));
    pipelines[b]->Adopt(model_.layout().buckets()[b], std::move(update), agreed);
  }
  // The values are the program's, and nobody is new.
  if (model_.ProgramUpdates() && agreed > Step()) return absl::OkStatus();
  // One bucket's pull may be over at once: nothing begins before all buckets have pulled.
  const absl::Time deadline = now + model_.definition().patience;
  for (const auto& pipeline : pipelines) pipeline->PullForNewGeneration(now, deadline, outbox);
  return absl::OkStatus();
}

absl::Status GenerationChange::Rejoin(absl::Time now, const NextGeneration& next, Outbox& outbox) {
  const auto& pipelines = model_.pipelines();
  std::vector<Step> finished;
  for (const BucketConsensus& consensus : next.consensus) finished.push_back(consensus.finished);
  model_.BeginGeneration(finished, model_.NormOf(finished));
  for (size_t b = 0; b < pipelines.size(); ++b) {
    const BucketConsensus& consensus = next.consensus[b];
    if (model_.ProgramUpdates() && pipelines[b]->finished() < consensus.finished &&
        !consensus.recovery_donor) {
      return absl::FailedPreconditionError(absl::StrCat(
          pipelines[b]->name(), ": no member of group ", group_.id().value(),
          " has the mean gradient of step ", consensus.finished.value(),
          " any more, which others have finished; start the run again, from a checkpoint if there ",
          "is one"));
    }
    COVEY_ASSIGN_OR_RETURN(auto update, model_.MakeUpdateOf(b));
    pipelines[b]->Rejoin(
        now,
        {.bucket = model_.layout().buckets()[b],
         .update = std::move(update),
         .finished = consensus.finished,
         .moved = next.moved,
         .program_at = next.from,
         .agreed = next.to,
         .pull = HasToPull(b, consensus),
         .owed_pulls = consensus.pulls - std::min(consensus.pulls, pipelines[b]->pulls()),
         .recovery_donor = consensus.recovery_donor,
         .deadline = now + model_.definition().patience},
        outbox);
  }
  return absl::OkStatus();
}

}  // namespace covey::worker
