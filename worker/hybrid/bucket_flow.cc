#include "worker/hybrid/bucket_flow.h"

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
      memory_(std::move(config.memory)),
      heir_of_(config.heir_of),
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
  if (journey_ || rejoining_) return;
  Deliver(now, std::exchange(deliveries_, {}), outbox);
  if (stopped_ || journey_ || rejoining_) return;  // A callback has begun something.
  if (again_) {
    BeginAgain(now, outbox);
  } else if (complete(pull_requests_) && owed_pulls_ > 0) {
    // Others had pulled when the group lost a member, and all have pulled since.
    --owed_pulls_;
    Deliver(now, std::exchange(pull_requests_, {}), outbox);
    Advance(now, outbox);
  } else if (complete(pull_requests_) && MayBegin(finished_)) {
    const absl::Time deadline = pull_requests_.front().deadline;
    BeginPull(now, std::exchange(pull_requests_, {}), deadline, Step(), outbox);
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
  journey.aside = true;
  journey.deadline = deadline;
  kept_residual_ = residual_;
  StartReduce(now, outbox);
}

void BucketFlow::BeginStep(absl::Time now, Outbox& outbox) {
  step_ = step_.Next();
  std::vector<Work> works = std::exchange(submissions_, {});
  Journey& journey = journey_.emplace();
  journey.samples = works.front().samples;
  journey.deadline = works.front().deadline;
  Pack(works);
  journey.gradient = gradient_;
  if (lag_ == 0 && works.size() == 1) {
    journey.values = works.front().values;
  } else {
    UseOwnMemory(journey);
  }
  kept_residual_ = residual_;
  if (lag_ == 0) {
    journey.works = std::move(works);
  } else {
    // The program has its memory back, and the sum is taken in place.
    kept_gradient_ = gradient_;
    Deliver(now, std::move(works), outbox);
  }
  StartReduce(now, outbox);
}

void BucketFlow::BeginAgain(absl::Time now, Outbox& outbox) {
  Journey& journey = journey_.emplace(std::move(*again_));
  again_.reset();
  journey.again = true;
  journey.interrupted = false;
  journey.status = absl::OkStatus();
  if (journey.aside) {
    gradient_.assign(bucket_.element_count, 0);
  } else if (lag_ == 0) {
    Pack(journey.works);
  } else {
    gradient_ = kept_gradient_;
  }
  journey.gradient = gradient_;
  residual_ = kept_residual_;
  StartReduce(now, outbox);
}

void BucketFlow::BeginPull(absl::Time now, std::vector<Work> works, absl::Time deadline, Step read,
                           Outbox& outbox) {
  ++pulls_;
  Journey& journey = journey_.emplace();
  journey.works = std::move(works);
  journey.deadline = deadline;
  journey.read = read;
  if (lag_ == 0 && bucket_.pieces.size() == 1 && !journey.works.empty()) {
    journey.values = journey.works.front().values;
  } else {
    UseOwnMemory(journey);
  }
  journey.unfinished = 1;
  StartGather(now, {kPullStreams + number_, pulls_}, outbox);
  if (heir_of_) {
    StartInheriting(now, *std::exchange(heir_of_, std::nullopt), outbox);
  } else {
    Exchange(now, {}, outbox);
  }
}

void BucketFlow::FailWaiting(absl::Time now, const absl::Status& status, Outbox& outbox) {
  std::vector<Work> works;
  if (again_) works = std::exchange(again_, std::nullopt)->works;
  if (quiet()) {
    works.insert(works.end(), journey_->works.begin(), journey_->works.end());
    journey_.reset();
  }
  for (const Work& work : works) {
    if (work.done) work.done(now, status, outbox);
  }
  for (std::vector<Work>* waiting : {&submissions_, &pull_requests_, &deliveries_}) {
    for (const Work& work : std::exchange(*waiting, {})) {
      if (work.done) work.done(now, status, outbox);
    }
  }
}

absl::Time BucketFlow::Due() const {
  absl::Time due = absl::InfiniteFuture();
  const auto add = [&due](const std::vector<Work>& works) {
    for (const Work& work : works) due = std::min(due, work.deadline);
  };
  // What is on its way ends with its collectives, by their deadlines.
  if (journey_ && journey_->interrupted) add(journey_->works);
  if (again_) add(again_->works);
  // Others wait for the program.
  if (complete(submissions_)) add(submissions_);
  if (complete(pull_requests_)) add(pull_requests_);
  add(deliveries_);
  return due;
}

void BucketFlow::Adopt(Bucket bucket, std::unique_ptr<PartUpdate> update, Step step) {
  COVEY_CHECK(idle() && bucket.element_count == bucket_.element_count);
  if (!submissions_.empty()) submitted_ = step.Next();
  bucket_ = std::move(bucket);
  update_ = std::move(update);
  if (memory_) memory_->Clear();
  heir_of_.reset();
  stopped_ = false;
  step_ = step;
  finished_ = step;
  pulls_ = 0;
}

void BucketFlow::PullAnew(absl::Time now, absl::Time deadline, Outbox& outbox) {
  COVEY_CHECK(idle());
  BeginPull(now, {}, deadline, Step(), outbox);
}

void BucketFlow::Interrupt() {
  rejoining_.reset();
  stopped_ = true;
  if (journey_) journey_->interrupted = true;
}

void BucketFlow::Rejoin(absl::Time now, Rejoining rejoining, Outbox& outbox) {
  rejoining_ = std::move(rejoining);
  stopped_ = false;
  Resume(now, outbox);
}

void BucketFlow::Resume(absl::Time now, Outbox& outbox) {
  if (!rejoining_ || (journey_ && !quiet())) return;
  Rejoining rejoining = *std::exchange(rejoining_, std::nullopt);
  bucket_ = std::move(rejoining.bucket);
  update_ = std::move(rejoining.update);
  pulls_ = 0;
  owed_pulls_ = rejoining.owed;
  heir_of_ = rejoining.heir_of;
  if (memory_ && (!heir_of_ || rejoining.moved)) memory_->Clear();
  // Should all die who have finished it.
  for (Step step = finished_; knows_rounds() && step < rejoining.step;) {
    memory_->Skip(step = step.Next());
  }
  std::vector<Work> over;
  if (journey_) {
    std::optional<Journey> left = std::exchange(journey_, std::nullopt);
    if (left->gradient.empty()) {
      over = std::move(left->works);
    } else {
      again_ = std::move(left);
    }
  }
  // Done again, unless another member has finished it.
  if (again_ && step_ <= rejoining.step) {
    over.insert(over.end(), again_->works.begin(), again_->works.end());
    again_.reset();
  }
  finished_ = rejoining.step;
  if (!again_) step_ = rejoining.step;
  if (rejoining.moved) {
    const uint64_t ahead =
        submitted_ > rejoining.base ? submitted_.value() - rejoining.base.value() : 0;
    submitted_ = Step(rejoining.agreed.value() + ahead);
  }
  if (submitted_ <= step_) {
    over.insert(over.end(), submissions_.begin(), submissions_.end());
    submissions_.clear();
  }
  deliveries_.insert(deliveries_.begin(), over.begin(), over.end());
  if (rejoining.pull) {
    BeginPull(now, {}, rejoining.deadline, rejoining.step, outbox);
  } else {
    Advance(now, outbox);
  }
}

void BucketFlow::GiveUp(absl::Time now, const absl::Status& status, Outbox& outbox) {
  rejoining_.reset();
  FailWaiting(now, status, outbox);
  if (!journey_) return;
  journey_->interrupted = false;
  journey_->status.Update(status);
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
      float* const packed = gradient_.data() + piece.elements.first;
      if (work.samples == 0) {
        std::fill_n(packed, piece.elements.count, 0.0f);
        continue;
      }
      // One pass: the sum is taken here, and the program's own stays for a second time.
      const auto weight = static_cast<float>(work.samples);
      std::transform(work.gradient.begin(), work.gradient.end(), packed,
                     [weight](float element) { return element * weight; });
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
  // Other buckets may be a step ahead.
  reduce.hides_plans = journey_->again;
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
  gather.hides_plans = journey_->again;
  gather.arrived = [self = shared_from_this()](absl::Time, const CollectiveResult& result,
                                               Outbox&) {
    self->Remember(result);
    self->journey_->gathered = true;
    self->journey_->seen_epoch = result.seen_epoch;
  };
  gather.done = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                            Outbox& outbox) {
    self->Settle(now, result.status, outbox);
  };
  group_.Start(now, std::move(gather), outbox);
}

void BucketFlow::Remember(const CollectiveResult& gathered) {
  if (!memory_ || journey_->inherited) return;
  if (journey_->gradient.empty()) {
    memory_->TakeFetch(journey_->values);
  } else {
    memory_->TakeStep(step_, journey_->values, gathered.samples);
  }
}

void BucketFlow::StartInheriting(absl::Time now, uint32_t root, Outbox& outbox) {
  journey_->inherited = true;
  ++journey_->unfinished;
  const auto told = std::make_shared<std::vector<float>>(memory_->saved_floats());
  if (root == group_.rank()) memory_->Save(*told);
  Collective tell{.id = {kInheritStreams + number_, pulls_},
                  .kind = CollectiveKind::kBroadcast,
                  .name = name_,
                  .data = *told,
                  .owner = told,
                  .root = root,
                  .deadline = journey_->deadline,
                  .priority = static_cast<int>(bucket_.position()),
                  .hides_plans = true};
  tell.arrived = [self = shared_from_this(), told](absl::Time now, const CollectiveResult&,
                                                   Outbox& outbox) {
    self->memory_->Load(*told);
    self->update_->Resume(now, *self->memory_, self->bucket_.parts[self->group_.rank()],
                          self->journey_->deadline, outbox);
    self->Exchange(now, {}, outbox);
  };
  tell.done = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                          Outbox& outbox) {
    self->Settle(now, result.status, outbox);
  };
  group_.Start(now, std::move(tell), outbox);
}

void BucketFlow::Exchange(absl::Time now, const CollectiveResult& sum, Outbox& outbox) {
  const PartRange part = bucket_.parts[group_.rank()];
  if (part.count == 0) {
    group_.Contribute(now, gather_, outbox);
    return;
  }
  if (!group_.failure().ok()) return;
  ++journey_->unfinished;
  PartStep step{.step = journey_->gradient.empty() ? journey_->read : step_,
                .samples = std::max<uint64_t>(sum.samples, 1),
                .values = journey_->values.subspan(part.first, part.count),
                .deadline = journey_->deadline,
                .done = [self = shared_from_this(),
                         contribution = GroupMachine::Contribution{.samples = sum.samples,
                                                                   .seen_epoch = sum.seen_epoch}](
                            absl::Time now, const absl::Status& status, Outbox& outbox) {
                  if (status.ok() && !self->journey_->interrupted) {
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
  if (journey_->interrupted && !journey_->gathered) return Resume(now, outbox);
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
  // What an interrupted generation knew of plans is over with it.
  if (journey.status.ok()) {
    TellChange(now, journey.gradient.empty() || journey.interrupted ? 0 : journey.seen_epoch,
               outbox);
  }
  if (rejoining_) {
    Resume(now, outbox);
  } else {
    Advance(now, outbox);
  }
}

}  // namespace covey::worker
