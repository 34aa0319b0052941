#include "worker/bucket_flow.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/kernels.h"

namespace covey::worker {

BucketFlow::BucketFlow(GroupMachine& group, ServerLink& link, Config config,
                       Environment environment, Step step, uint64_t pulls)
    : group_(group),
      link_(link),
      environment_(std::move(environment)),
      bucket_(std::move(config.bucket)),
      number_(config.number),
      name_(std::move(config.name)),
      format_(config.format),
      lag_(config.lag),
      update_(std::move(config.update)),
      step_(step),
      finished_(step),
      pulls_(pulls) {
  if (config.error_feedback) residual_.assign(bucket_.element_count, 0);
}

void BucketFlow::Submit(absl::Time now, Step step, Work work, Outbox& outbox) {
  if (step > step_) {
    COVEY_CHECK(submissions_.empty() || submitted_ == step);
    submitted_ = step;
    submissions_.push_back(std::move(work));
  } else {
    deliveries_.push_back(std::move(work));
  }
  Advance(now, outbox);
}

void BucketFlow::Pull(absl::Time now, Work work, Outbox& outbox) {
  pull_requests_.push_back(std::move(work));
  Advance(now, outbox);
}

void BucketFlow::Flush(absl::Time now, Work work, Outbox& outbox) {
  // Where the program has lent its own memory, the newest values are there.
  if (lag_ == 0 && bucket_.pieces.size() == 1) {
    work.done(now, group_.failure(), outbox);
    return;
  }
  deliveries_.push_back(std::move(work));
  Advance(now, outbox);
}

void BucketFlow::Advance(absl::Time now, Outbox& outbox) {
  if (!idle()) return;
  Deliver(now, std::exchange(deliveries_, {}), outbox);
  if (!idle()) return;  // A callback has begun something.
  if (complete(pull_requests_) && MayBegin(finished_)) {
    const absl::Time deadline = pull_requests_.front().deadline;
    BeginPull(now, std::exchange(pull_requests_, {}), deadline, outbox);
  } else if (HasSubmitted(step_.Next()) && MayBegin(submitted_)) {
    BeginStep(now, outbox);
  }
}

void BucketFlow::StepAside(absl::Time now, absl::Time deadline, Outbox& outbox) {
  COVEY_CHECK(idle());
  step_ = step_.Next();
  if (submitted_ == step_) {
    for (Work& work : std::exchange(submissions_, {})) deliveries_.push_back(std::move(work));
  }
  Journey& journey = journey_.emplace();
  UseOwnMemory(journey);
  gradient_.assign(bucket_.element_count, 0);
  journey.gradient = gradient_;
  journey.deadline = deadline;
  StartReduce(now, outbox);
}

void BucketFlow::BeginStep(absl::Time now, Outbox& outbox) {
  step_ = step_.Next();
  std::vector<Work> works = std::exchange(submissions_, {});
  Journey& journey = journey_.emplace();
  journey.samples = works.front().samples;
  journey.deadline = works.front().deadline;
  if (lag_ == 0 && works.size() == 1) {
    journey.gradient = works.front().gradient;
    journey.values = works.front().values;
    Scale(journey.gradient, static_cast<float>(journey.samples));
  } else {
    UseOwnMemory(journey);
    Pack(works);
    journey.gradient = gradient_;
  }
  if (lag_ == 0) {
    journey.works = std::move(works);
  } else {
    Deliver(now, std::move(works), outbox);
  }
  StartReduce(now, outbox);
}

void BucketFlow::BeginPull(absl::Time now, std::vector<Work> works, absl::Time deadline,
                           Outbox& outbox) {
  ++pulls_;
  Journey& journey = journey_.emplace();
  journey.works = std::move(works);
  journey.deadline = deadline;
  if (lag_ == 0 && bucket_.pieces.size() == 1 && !journey.works.empty()) {
    journey.values = journey.works.front().values;
  } else {
    UseOwnMemory(journey);
  }
  journey.unfinished = 1;
  StartGather(now, {kPullStreams + number_, pulls_}, outbox);
  Exchange(now, {}, outbox);
}

void BucketFlow::FailWaiting(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (std::vector<Work>* waiting : {&submissions_, &pull_requests_, &deliveries_}) {
    for (const Work& work : std::exchange(*waiting, {})) {
      if (work.done) work.done(now, status, outbox);
    }
  }
}

void BucketFlow::Adopt(Bucket bucket, std::unique_ptr<PartUpdate> update, Step step) {
  COVEY_CHECK(idle() && bucket.element_count == bucket_.element_count);
  if (!submissions_.empty()) submitted_ = step.Next();
  bucket_ = std::move(bucket);
  update_ = std::move(update);
  step_ = step;
  finished_ = step;
  pulls_ = 0;
}

void BucketFlow::PullAnew(absl::Time now, absl::Time deadline, Outbox& outbox) {
  COVEY_CHECK(idle());
  BeginPull(now, {}, deadline, outbox);
}

void BucketFlow::UseOwnMemory(Journey& journey) {
  values_.resize(bucket_.element_count);
  journey.values = values_;
  journey.in_own_memory = true;
}

void BucketFlow::Pack(const std::vector<Work>& works) {
  gradient_.resize(bucket_.element_count);
  for (const Work& work : works) {
    for (const Bucket::Piece& piece : bucket_.pieces) {
      if (piece.tensor != work.tensor) continue;
      const auto packed = std::span(gradient_).subspan(piece.elements.first, piece.elements.count);
      std::copy(work.gradient.begin(), work.gradient.end(), packed.begin());
      Scale(packed, static_cast<float>(work.samples));
    }
  }
}

void BucketFlow::Deliver(absl::Time now, std::vector<Work> works, Outbox& outbox) {
  for (const Work& work : works) {
    if (group_.failure().ok()) {
      for (const Bucket::Piece& piece : bucket_.pieces) {
        if (piece.tensor != work.tensor) continue;
        const auto from = std::span(values_).subspan(piece.elements.first, piece.elements.count);
        std::copy(from.begin(), from.end(), work.values.begin());
      }
    }
    if (work.done) work.done(now, group_.failure(), outbox);
  }
}

void BucketFlow::StartReduce(absl::Time now, Outbox& outbox) {
  Collective reduce;
  reduce.id = {2 * number_ + 1, step_.value()};
  reduce.kind = CollectiveKind::kReduceScatter;
  reduce.name = name_;
  reduce.data = journey_->gradient;
  reduce.parts = bucket_.parts;
  reduce.samples = journey_->samples;
  reduce.deadline = journey_->deadline;
  reduce.format = format_;
  reduce.residual = residual_;
  reduce.priority = static_cast<int>(bucket_.position());
  reduce.arrived = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                               Outbox& outbox) {
    self->Exchange(now, result, outbox);
  };
  reduce.done = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                            Outbox& outbox) {
    self->Settle(now, result.status, outbox);
  };
  journey_->unfinished = 2;
  // First the gather, so that it is there when the sum is complete, which may be at once.
  StartGather(now, {2 * number_ + 2, step_.value()}, outbox);
  group_.Start(now, std::move(reduce), outbox);
  TellChange(now, 0, outbox);
}

void BucketFlow::StartGather(absl::Time now, const CollectiveId& id, Outbox& outbox) {
  gather_ = id;
  Collective gather;
  gather.id = id;
  gather.kind = CollectiveKind::kAllGather;
  gather.name = name_;
  gather.data = journey_->values;
  gather.parts = bucket_.parts;
  gather.held = true;
  gather.deadline = journey_->deadline;
  gather.priority = static_cast<int>(bucket_.position());
  gather.done = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                            Outbox& outbox) {
    self->journey_->seen_epoch = result.seen_epoch;
    self->Settle(now, result.status, outbox);
  };
  group_.Start(now, std::move(gather), outbox);
}

void BucketFlow::Exchange(absl::Time now, const CollectiveResult& sum, Outbox& outbox) {
  const PartRange part = bucket_.parts[group_.rank()];
  if (part.count == 0) {
    group_.Contribute(now, gather_, outbox);
    return;
  }
  if (!group_.failure().ok()) return;
  ++journey_->unfinished;
  PartStep step{.step = step_,
                .samples = std::max<uint64_t>(sum.samples, 1),
                .values = journey_->values.subspan(part.first, part.count),
                .deadline = journey_->deadline,
                .done = [self = shared_from_this(),
                         contribution = GroupMachine::Contribution{.samples = sum.samples,
                                                                   .seen_epoch = sum.seen_epoch}](
                            absl::Time now, const absl::Status& status, Outbox& outbox) {
                  if (status.ok()) {
                    self->group_.Contribute(now, self->gather_, contribution, outbox);
                  }
                  self->Settle(now, status, outbox);
                }};
  if (journey_->gradient.empty()) {
    update_->Fetch(now, std::move(step), outbox);
  } else {
    step.sum = journey_->gradient.subspan(part.first, part.count);
    update_->Apply(now, std::move(step), outbox);
  }
}

void BucketFlow::Settle(absl::Time now, const absl::Status& status, Outbox& outbox) {
  journey_->status.Update(status);
  const bool over = --journey_->unfinished == 0;
  // No member waits for what the others can no longer give: the group's first error is everybody's.
  link_.FollowFailure(now, outbox);
  if (!over) return;
  const Journey journey = std::move(*journey_);
  journey_.reset();
  const bool step_over = !journey.gradient.empty() && journey.status.ok();
  if (step_over) finished_ = step_;
  if (journey.in_own_memory && journey.status.ok()) {
    Deliver(now, journey.works, outbox);
  } else {
    for (const Work& work : journey.works) {
      if (work.done) work.done(now, journey.status, outbox);
    }
  }
  if (step_over) TellChange(now, journey.seen_epoch, outbox);
  Advance(now, outbox);
}

}  // namespace covey::worker
