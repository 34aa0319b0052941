// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/hybrid_step_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/group/group_messages.h"

namespace covey::worker {

absl::Status HybridStepEngine::SetTables(std::span<const TableId> tables,
                                         const HybridOptions& options, absl::Duration patience) {
  COVEY_CHECK(group_.ready() && options.lag <= 1);
  const bool is_program = options.synchronization == Synchronization::kProgram;
  if (is_program && model_.empty() && group_.agreed_step() > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", group_.id().value(), " is running and has finished step ", group_.agreed_step(),
        "; the parameters are in the other members' programs, so no member can join it; close ",
        "this worker, and start the run again with all members"));
  }
  // A worker that joins a running group goes on with the group's steps.
  const Step own = model_.empty() ? Step() : step_;
  step_ = std::max(own, Step(group_.agreed_step()));
  COVEY_RETURN_IF_ERROR(model_.Set(
      {.tables = {tables.begin(), tables.end()}, .options = options, .patience = patience}, view_,
      step_, Environment()));
  change_.ModelSet();
  tuning_.SetLayouts(options.autotune ? model_.TunableLayouts()
                                      : std::vector<StepTuning::Layout>());
  tuning_.Begin(model_.finished(), model_.pipelines().size());
  lateness_.Reset(model_.pipelines().size());
  lateness_.SetCounted(step_);
  lateness_.SetSubmitted(step_);
  recovery_.Cancel();
  program_has_ended_ = false;
  return absl::OkStatus();
}

BucketPipeline::Environment HybridStepEngine::Environment() {
  return {
      .may_begin = [this](uint32_t bucket, Step step) { return MayBegin(bucket, step); },
      .changed = [this](absl::Time now, uint32_t bucket, uint64_t agreed_plan_epoch,
                        Outbox& outbox) { BucketChanged(now, bucket, agreed_plan_epoch, outbox); }};
}

Step HybridStepEngine::step() const { return std::max(step_, model_.begun()); }

void HybridStepEngine::BeginStep(absl::Time now, Outbox& outbox) {
  step_ = step().Next();
  Wake(now, outbox);
}

void HybridStepEngine::Submit(absl::Time now, TensorRequest request, Outbox& outbox) {
  COVEY_CHECK(request.gradient.size() == element_count(request.tensor) &&
              request.values.size() == request.gradient.size() && step_.value() > 0);
  if (has_left()) return request.done(now, failure_, outbox);
  BucketPipeline& pipeline = model_.PipelineOf(request.tensor);
  if (pipeline.begun() < step_) lateness_.SetSubmitted(step_);
  pipeline.Submit(now, step_, std::move(request), outbox);
}

void HybridStepEngine::Pull(absl::Time now, TensorRequest request, Outbox& outbox) {
  if (has_left()) return request.done(now, failure_, outbox);
  model_.PipelineOf(request.tensor).Pull(now, std::move(request), outbox);
}

void HybridStepEngine::Flush(absl::Time now, TensorRequest request, Outbox& outbox) {
  if (has_left()) return request.done(now, failure_, outbox);
  model_.PipelineOf(request.tensor).Flush(now, std::move(request), outbox);
}

void HybridStepEngine::BucketChanged(absl::Time now, uint32_t bucket, uint64_t agreed_plan_epoch,
                                     Outbox& outbox) {
  UpdateRecovery(now);
  const auto& pipelines = model_.pipelines();
  const uint64_t samples = pipelines[bucket]->samples();
  if (bucket == 0) {
    if (agreed_plan_epoch > 0) change_.EndAfter(now, pipelines[0]->finished(), outbox);
    for (size_t b = 1; b < pipelines.size(); ++b) pipelines[b]->Advance(now, outbox);
  }
  // After a generation's last step there is nothing to be tuned, which all members know.
  if (state() != GenerationChange::State::kRunning) return;
  if (tuning_.state() != StepTuning::State::kTrial) return;
  tuning_.StepOver(now, model_.ended_by_all(), samples, now + model_.definition().patience, outbox);
}

void HybridStepEngine::Tune(absl::Time now, Outbox& outbox) {
  const StepTuning::Settings next = tuning_.Decide();
  model_.SetRoute(next.route);
  if (next.layout.buckets != model_.pipelines().size()) {
    SetFusion(now, next.layout.fusion, next.route, outbox);
  }
  for (const auto& pipeline : model_.pipelines()) pipeline->Advance(now, outbox);
}

absl::Status HybridStepEngine::FollowLayout(absl::Time now, Outbox& outbox) {
  const std::vector<MemberProgress>& members = group_.recovery_state();
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    const size_t buckets = members[rank].buckets.size();
    if (buckets == 0 || buckets == model_.pipelines().size()) continue;
    const StepTuning::Layout* const layout = tuning_.LayoutWith(buckets);
    if (layout == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "group ", group_.id().value(), ": ", group_.NameOf(rank), " trains another model than ",
          group_.NameOf(group_.rank()), "; give all members the same tables and options"));
    }
    // Otherwise the other one follows.
    if (tuning_.state() != StepTuning::State::kAgreeing) continue;
    SetFusion(now, layout->fusion, {}, outbox);
    const size_t followed = model_.pipelines().size();
    recovery_.Interrupted(now, std::vector<Step>(followed, model_.finished()));
    break;
  }
  return absl::OkStatus();
}

void HybridStepEngine::SetFusion(absl::Time now, const FusionLimits& fusion, const StepRoute& route,
                                 Outbox& outbox) {
  std::vector<std::pair<Step, std::vector<TensorRequest>>> submitted;
  for (const auto& pipeline : model_.pipelines()) {
    submitted.emplace_back(pipeline->submitted_step(), pipeline->TakeSubmissions());
  }
  const absl::Status status =
      model_.SetFusion(fusion, view_, model_.finished_by_all(), Environment());
  if (!status.ok()) group_.Abort(now, status, outbox);
  model_.SetRoute(route);
  lateness_.Reset(model_.pipelines().size());
  for (auto& [step, requests] : submitted) {
    for (TensorRequest& request : requests) {
      model_.PipelineOf(request.tensor).Submit(now, step, std::move(request), outbox);
    }
  }
}

void HybridStepEngine::CheckDeadlines(absl::Time now, Outbox& outbox) {
  if (now < group_.deadline_floor()) return;
  for (const auto& pipeline : model_.pipelines()) {
    if (now < pipeline->Due()) continue;
    group_.Abort(now,
                 absl::DeadlineExceededError(absl::StrCat(
                     pipeline->name(), " after step ", pipeline->finished().value(), ": ",
                     is_changing() ? "the group still waits for all members to meet as generation "
                                   : "others are not over yet, in generation ",
                     group_.generation(), " of group ", group_.id().value(),
                     "; see `covey status`, or allow more time")),
                 outbox);
    // Answers of servers are not waited for either.
    link_.FollowFailure(now, outbox);
    return;
  }
}

void HybridStepEngine::Wake(absl::Time now, Outbox& outbox) {
  if (change_.MayReform()) {
    const absl::Status reformed = change_.Reform(now, outbox);
    if (!reformed.ok()) Left(now, reformed, outbox);
  }
  if (group_.failure().ok()) CheckDeadlines(now, outbox);
  const auto& pipelines = model_.pipelines();
  if (!group_.failure().ok()) {
    // Nothing will ever begin again.
    for (const auto& pipeline : pipelines) pipeline->FailWaiting(now, group_.failure(), outbox);
    return;
  }
  if (has_left() || is_changing()) return;
  if (tuning_.decided()) Tune(now, outbox);
  const LatenessRule rule = Rule();
  for (size_t b = 0; b < pipelines.size(); ++b) {
    if (StepAsideAt(b, rule) > now) continue;
    lateness_.NoteStepAside(pipelines[b]->begun().Next());
    pipelines[b]->StepAside(now, now + model_.definition().patience, outbox);
  }
}

absl::Time HybridStepEngine::NextWake() const {
  if (change_.MayReform()) return absl::InfinitePast();
  const auto& pipelines = model_.pipelines();
  if (!group_.failure().ok()) {
    const bool waiting = std::any_of(pipelines.begin(), pipelines.end(),
                                     [](const auto& pipeline) { return pipeline->waiting(); });
    return waiting ? absl::InfinitePast() : absl::InfiniteFuture();
  }
  absl::Time next = absl::InfiniteFuture();
  for (const auto& pipeline : pipelines) next = std::min(next, pipeline->Due());
  next = std::max(next, group_.deadline_floor());
  if (has_left() || is_changing()) return next;
  if (tuning_.decided()) return absl::InfinitePast();
  const LatenessRule rule = Rule();
  for (size_t b = 0; b < pipelines.size(); ++b) next = std::min(next, StepAsideAt(b, rule));
  return next;
}

void HybridStepEngine::SetView(absl::Time now, std::shared_ptr<const ClusterView> view,
                               Outbox& outbox) {
  view_ = std::move(view);
  Wake(now, outbox);
}

LatenessRule HybridStepEngine::Rule() const {
  const proto::Group* group = view_->FindGroup(group_.id());
  // A program that updates by itself needs the mean of each step, so it is waited for.
  if (program_has_ended_ || model_.ProgramUpdates() || group == nullptr ||
      group->generation() != group_.generation()) {
    return {};
  }
  return {.minimum_members = group->minimum_members(),
          .grace = absl::Milliseconds(group->grace_ms())};
}

void HybridStepEngine::Observe(absl::Time now, const Message& message, Outbox& outbox) {
  if (model_.empty() || !message.envelope.has_group_slice() || !Rule().on()) return;
  // It may belong to a route that this member does not know yet.
  if (tuning_.state() == StepTuning::State::kAgreeing) return;
  const proto::GroupSlice& slice = message.envelope.group_slice();
  const uint32_t bucket = (slice.stream() - 1) / 2;
  if (slice.stream() % 2 == 0 || bucket >= model_.pipelines().size()) return;
  if (ReadRound(slice.round()) != group_.round()) return;
  const BucketPipeline& pipeline = *model_.pipelines()[bucket];
  const Step step(slice.sequence());
  if (step != pipeline.begun().Next()) return;
  if (slice.from_rank() >= group_.size()) return;
  const size_t elements = pipeline.bucket().element_count;
  const auto plan =
      group_.PlanFor(CollectiveKind::kReduceScatter,
                     EncodedBytes(pipeline.FormatAt(step), elements), pipeline.route().algorithm);
  lateness_.Observe(now, bucket, slice,
                    {.plan = *plan, .parts = pipeline.bucket().parts, .elements = elements});
  Wake(now, outbox);
}

absl::Time HybridStepEngine::StepAsideAt(size_t bucket, const LatenessRule& rule) const {
  const BucketPipeline& pipeline = *model_.pipelines()[bucket];
  const Step next = pipeline.begun().Next();
  if (!pipeline.idle() || !MayBegin(static_cast<uint32_t>(bucket), next)) {
    return absl::InfiniteFuture();
  }
  // The program has gone on to a later step, which the group was at with another bucket.
  if (pipeline.IsBehind(step_)) return absl::InfinitePast();
  if (!rule.on() || pipeline.HasSubmitted(next)) return absl::InfiniteFuture();
  return lateness_.DueAt(bucket, next, rule);
}

uint64_t HybridStepEngine::Interrupted(absl::Time now, Outbox& outbox) {
  if (model_.empty()) return 0;
  const Step finished = model_.finished();
  if (change_.Interrupt(now, outbox)) {
    std::vector<Step> begun;
    for (const auto& pipeline : model_.pipelines()) begun.push_back(pipeline->begun());
    recovery_.Interrupted(now, std::move(begun));
  }
  return finished.value();
}

void HybridStepEngine::GroupReady(absl::Time now, Outbox& outbox) {
  if (!is_changing()) return;
  if (const absl::Status followed = FollowLayout(now, outbox); !followed.ok()) {
    group_.Abort(now, followed, outbox);
    return;
  }
  const GenerationChange::NextGeneration next = change_.Agree();
  step_ = next.Renumbered(step_);
  lateness_.SetSubmitted(next.Renumbered(lateness_.submitted()));
  lateness_.Reset(model_.pipelines().size());
  if (next.planned) lateness_.SetCounted(next.to);
  model_.SetRoute({});
  tuning_.Begin(next.finished(), model_.pipelines().size());
  const absl::Status status = change_.GoOn(now, view_, next, outbox);
  if (!status.ok()) group_.Abort(now, status, outbox);
  for (const auto& pipeline : model_.pipelines()) pipeline->Advance(now, outbox);
  UpdateRecovery(now);
}

void HybridStepEngine::UpdateRecovery(absl::Time now) {
  if (is_changing()) return;
  const auto& pipelines = model_.pipelines();
  recovery_.Update(now, [&pipelines](size_t bucket) { return pipelines[bucket]->finished(); });
}

void HybridStepEngine::Left(absl::Time now, const absl::Status& status, Outbox& outbox) {
  failure_ = absl::IsCancelled(status) ? status : absl::AbortedError(status.message());
  change_.Leave();
  recovery_.Cancel();
  // Should this worker be in a group again, it begins as a new member.
  for (const auto& pipeline : model_.TakePipelines()) pipeline->GiveUp(now, failure_, outbox);
}

}  // namespace covey::worker
