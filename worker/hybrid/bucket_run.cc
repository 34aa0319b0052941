// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_run.h"

#include <algorithm>
#include <utility>

#include "common/base/annotate.h"
#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/base/transitions.h"
#include "common/tensor/kernels.h"
#include "worker/hybrid/adasum_reduce.h"

namespace covey::worker {
namespace {

using State = BucketRun::State;

constexpr Transition<State> kLegal[] = {
    {State::kNew, State::kReducing},
    {State::kNew, State::kUpdating},
    {State::kNew, State::kRestoring},
    {State::kReducing, State::kUpdating},
    {State::kReducing, State::kClipping},
    {State::kClipping, State::kUpdating},
    {State::kRestoring, State::kUpdating},
    {State::kRestoring, State::kGathered},
    {State::kUpdating, State::kGathering},
    {State::kGathering, State::kGathered},
    {State::kGathered, State::kOver},
    // An error of the group or of the update.
    {State::kRestoring, State::kOver},
    {State::kReducing, State::kOver},
    {State::kClipping, State::kOver},
    {State::kUpdating, State::kOver},
    {State::kGathering, State::kOver},
    // The group leaves its generation.
    {State::kRestoring, State::kInterrupted},
    {State::kReducing, State::kInterrupted},
    {State::kClipping, State::kInterrupted},
    {State::kUpdating, State::kInterrupted},
    {State::kGathering, State::kInterrupted},
    {State::kGathered, State::kGatheredInterrupted},
    {State::kInterrupted, State::kStopped},
    {State::kGatheredInterrupted, State::kOver},
    // There is no next generation.
    {State::kRestoring, State::kGivenUp},
    {State::kReducing, State::kGivenUp},
    {State::kClipping, State::kGivenUp},
    {State::kUpdating, State::kGivenUp},
    {State::kGathering, State::kGivenUp},
    {State::kGathered, State::kGivenUp},
    {State::kInterrupted, State::kGivenUp},
    {State::kGatheredInterrupted, State::kGivenUp},
    {State::kGivenUp, State::kOver},
};

}  // namespace

bool BucketRun::IsLegal(State from, State to) { return IsLegalTransition(kLegal, from, to); }

BucketRun::BucketRun(BucketStages& stages, std::weak_ptr<const void> owner, BucketTask task,
                     std::function<void(absl::Time, Outbox&)> ended)
    : stages_(stages), owner_(std::move(owner)), task_(std::move(task)), ended_(std::move(ended)) {}

void BucketRun::Enter(State to) {
  COVEY_CHECK(IsLegal(state_, to));
  state_ = to;
}

std::shared_ptr<BucketRun> BucketRun::Pin() {
  const auto both = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<void>>>(
      owner_.lock(), shared_from_this());
  return {both, this};
}

void BucketRun::StartStep(absl::Time now, BucketBuffers::StepInput input, Outbox& outbox) {
  Enter(State::kReducing);
  stages_.server_times.End(now);
  input_ = std::move(input);
  if (stages_.noise != nullptr) own_square_ = SumOfSquares(input_.gradient);
  if (stages_.gradient.FlushesAt(task_.step)) {
    AddInto(input_.gradient, input_.residual);
    std::fill(input_.residual.begin(), input_.residual.end(), 0.0f);
    input_.residual = {};
  }
  stages_under_way_ = 2;
  Collective reduce;
  reduce.id = {2 * stages_.number + 1, task_.step.value()};
  reduce.kind = CollectiveKind::kReduceScatter;
  reduce.name = stages_.name;
  reduce.data = input_.gradient;
  reduce.parts = stages_.bucket.parts;
  reduce.samples = task_.samples;
  reduce.deadline = task_.deadline;
  reduce.algorithm = stages_.route.algorithm;
  reduce.slice_bytes = stages_.route.slice_bytes;
  reduce.format = stages_.gradient.At(task_.step);
  reduce.residual = input_.residual;
  reduce.priority = static_cast<int>(stages_.bucket.position());
  // Other buckets may be a step ahead.
  reduce.is_change_point = !input_.repeats;
  reduce.arrived = [self = Pin()](absl::Time now, const CollectiveResult& sum, Outbox& outbox) {
    if (self->stages_.noise != nullptr) self->MeasureNoise(now, outbox);
    if (self->stages_.clip != nullptr) return;
    self->Enter(State::kUpdating);
    self->UpdatePart(now, sum, outbox);
  };
  reduce.done = [self = Pin()](absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    // Not before: the sum changes where it is.
    if (result.status.ok() && self->stages_.clip != nullptr && self->state_ == State::kReducing) {
      self->ClipPart(now, result, outbox);
    }
    self->StageEnded(now, result.status, outbox);
  };
  // The gather comes first, so that it is there when the sum is complete, which may be at once.
  StartGather(now, {2 * stages_.number + 2, task_.step.value()}, outbox);
  if (stages_.combine == Combine::kAdasum) {
    std::vector<PartRange> tensors;
    for (const Bucket::Piece& piece : stages_.bucket.pieces) tensors.push_back(piece.elements);
    StartAdasum(now, stages_.group, stages_.number, std::move(tensors), std::move(reduce), outbox);
  } else {
    stages_.group.Start(now, std::move(reduce), outbox);
  }
}

void BucketRun::StartPull(absl::Time now, uint64_t pull, std::optional<uint32_t> donor,
                          Outbox& outbox) {
  restores_ = donor.has_value();
  Enter(restores_ ? State::kRestoring : State::kUpdating);
  stages_under_way_ = 1;
  if (restores_ && stages_.mean) return StartMeanBroadcast(now, pull, *donor, outbox);
  StartGather(now, {kPullStreams + stages_.number, pull}, outbox);
  if (state_ == State::kOver) return;  // The group has failed.
  if (restores_) {
    StartRestore(now, pull, *donor, outbox);
  } else {
    UpdatePart(now, {}, outbox);
  }
}

void BucketRun::StartGather(absl::Time now, const CollectiveId& id, Outbox& outbox) {
  gather_ = id;
  Collective gather;
  gather.id = id;
  gather.kind = CollectiveKind::kAllGather;
  gather.name = stages_.name;
  gather.data = task_.values;
  gather.parts = stages_.bucket.parts;
  gather.held = true;
  gather.deadline = task_.deadline;
  gather.algorithm = stages_.route.algorithm;
  gather.slice_bytes = stages_.route.slice_bytes;
  // Parameters that only programs have travel as they are.
  const bool is_programs_first = stages_.mean && !is_step();
  gather.format = is_programs_first ? WireFormat::kFloat32 : stages_.value_format;
  gather.priority = static_cast<int>(stages_.bucket.position());
  gather.is_change_point = !input_.repeats;
  gather.arrived = [self = Pin()](absl::Time, const CollectiveResult& result, Outbox&) {
    self->ValuesArrived(result);
  };
  gather.done = [self = Pin()](absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    self->StageEnded(now, result.status, outbox);
  };
  stages_.group.Start(now, std::move(gather), outbox);
}

void BucketRun::StartRestore(absl::Time now, uint64_t pull, uint32_t donor, Outbox& outbox) {
  ++stages_under_way_;
  const auto values = std::make_shared<std::vector<float>>(stages_.memory->saved_values());
  Buffer progress;
  if (donor == stages_.group.rank()) {
    stages_.memory->SaveValues(*values);
    progress = stages_.memory->SaveProgress();
  }
  Collective broadcast{.id = {kRestoreStreams + stages_.number, pull},
                       .kind = CollectiveKind::kBroadcast,
                       .name = stages_.name,
                       .data = *values,
                       .owner = values,
                       .root = donor,
                       .attachment = std::move(progress),
                       .deadline = task_.deadline,
                       .priority = static_cast<int>(stages_.bucket.position()),
                       .is_change_point = false};
  broadcast.arrived = [self = Pin(), values](absl::Time now, const CollectiveResult& result,
                                             Outbox& outbox) {
    BucketStages& stages = self->stages_;
    if (const absl::Status status = stages.memory->Load(*values, result.attachment); !status.ok()) {
      stages.group.Abort(now, Annotate(stages.name, status), outbox);
      return;
    }
    self->Enter(State::kUpdating);
    stages.update->Resume(now, *stages.memory, stages.bucket.parts[stages.group.rank()],
                          self->task_.deadline, outbox);
    self->UpdatePart(now, {}, outbox);
  };
  broadcast.done = [self = Pin()](absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    self->StageEnded(now, result.status, outbox);
  };
  stages_.group.Start(now, std::move(broadcast), outbox);
}

void BucketRun::StartMeanBroadcast(absl::Time now, uint64_t pull, uint32_t donor, Outbox& outbox) {
  MeanMemory& mean = *stages_.mean;
  // A member that has the mean keeps it, because the donor may die: it gets the same bits.
  if (mean.step() < task_.step) mean.Forget();
  Collective broadcast{.id = {kRestoreStreams + stages_.number, pull},
                       .kind = CollectiveKind::kBroadcast,
                       .name = stages_.name,
                       .data = task_.values,
                       .root = donor,
                       .deadline = task_.deadline,
                       .priority = static_cast<int>(stages_.bucket.position()),
                       .is_change_point = false};
  if (donor == stages_.group.rank()) broadcast.attachment = mean.Save();
  broadcast.arrived = [self = Pin()](absl::Time now, const CollectiveResult& result,
                                     Outbox& outbox) {
    BucketStages& stages = self->stages_;
    if (const absl::Status status = stages.mean->Load(result.attachment); !status.ok()) {
      stages.group.Abort(now, Annotate(stages.name, status), outbox);
      return;
    }
    self->Enter(State::kGathered);
  };
  broadcast.done = [self = Pin()](absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    self->StageEnded(now, result.status, outbox);
  };
  stages_.group.Start(now, std::move(broadcast), outbox);
}

void BucketRun::MeasureNoise(absl::Time now, Outbox& outbox) {
  const PartRange part = stages_.bucket.parts[stages_.group.rank()];
  stages_.noise->Add(now, stages_.number, task_.step,
                     {.own_square = own_square_,
                      .own_samples = task_.samples,
                      .sum = input_.gradient.subspan(part.first, part.count)},
                     task_.deadline, outbox);
}

void BucketRun::ClipPart(absl::Time now, const CollectiveResult& sum, Outbox& outbox) {
  Enter(State::kClipping);
  const PartRange part = stages_.bucket.parts[stages_.group.rank()];
  const std::span<float> own = input_.gradient.subspan(part.first, part.count);
  // The gather, which waits for this member's part, keeps the run alive until it has failed.
  stages_.clip->Add(
      now, stages_.number, task_.step, own, sum.samples, task_.deadline,
      [weak = weak_from_this(), own, sum](absl::Time now, float factor, Outbox& outbox) {
        const std::shared_ptr<BucketRun> self = weak.lock();
        if (self == nullptr || self->state_ != State::kClipping) return;
        Scale(own, factor);
        self->Enter(State::kUpdating);
        self->UpdatePart(now, sum, outbox);
      },
      outbox);
}

void BucketRun::UpdatePart(absl::Time now, const CollectiveResult& sum, Outbox& outbox) {
  if (stages_.mean) stages_.mean->Forget();
  const PartRange part = stages_.bucket.parts[stages_.group.rank()];
  if (part.count == 0) {
    Enter(State::kGathering);
    stages_.group.Contribute(now, gather_, outbox);
    return;
  }
  if (!stages_.group.failure().ok()) return;
  ++stages_under_way_;
  // An update without servers is done before this function returns, and so takes no time here.
  stages_.server_times.Begin(now);
  const Contribution contribution{.samples = sum.samples,
                                  .agreed_plan_epoch = sum.agreed_plan_epoch};
  PartStep step{.step = task_.step,
                .samples = sum.samples,
                .rate_factors = task_.rate_factors,
                .values = task_.values.subspan(part.first, part.count),
                .deadline = task_.deadline,
                .done = [self = Pin(), contribution](absl::Time now, const absl::Status& status,
                                                     Outbox& outbox) {
                  self->stages_.server_times.End(now);
                  if (status.ok() && self->state_ == State::kUpdating) {
                    self->Enter(State::kGathering);
                    self->stages_.group.Contribute(now, self->gather_, contribution, outbox);
                  }
                  self->StageEnded(now, status, outbox);
                }};
  if (is_step()) {
    step.sum = input_.gradient.subspan(part.first, part.count);
    step.sum_memory = std::move(input_.gradient_memory);
    stages_.update->Apply(now, std::move(step), outbox);
  } else {
    stages_.update->Fetch(now, std::move(step), outbox);
  }
}

void BucketRun::ValuesArrived(const CollectiveResult& gathered) {
  Enter(State::kGathered);
  samples_ = gathered.samples;
  if (stages_.memory && !restores_) {
    if (is_step()) {
      stages_.memory->TakeStep(task_.step, task_.values, gathered.samples);
    } else {
      stages_.memory->TakeFetch(task_.values);
    }
  }
  if (stages_.mean && is_step()) stages_.mean->Take(task_.step, gathered.samples);
  if (is_step()) agreed_plan_epoch_ = gathered.agreed_plan_epoch;
}

void BucketRun::StageEnded(absl::Time now, const absl::Status& status, Outbox& outbox) {
  status_.Update(status);
  const bool last = --stages_under_way_ == 0;
  // No member waits for what the others can no longer give: the group's first error is everybody's.
  stages_.link.FollowFailure(now, outbox);
  if (!last) return;
  input_.gradient_memory = Buffer();  // The next step may begin before this run is destroyed.
  if (state_ != State::kGathered) agreed_plan_epoch_ = 0;
  Enter(state_ == State::kInterrupted ? State::kStopped : State::kOver);
  if (state_ == State::kOver) stages_.server_times.RunOver(now);
  ended_(now, outbox);
}

void BucketRun::Interrupt() {
  if (interrupted() || state_ == State::kGivenUp) return;
  Enter(state_ == State::kGathered ? State::kGatheredInterrupted : State::kInterrupted);
}

void BucketRun::GiveUp(const absl::Status& status) {
  Enter(State::kGivenUp);
  status_.Update(status);
}

}  // namespace covey::worker
