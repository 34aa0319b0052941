// SPDX-License-Identifier: Apache-2.0
#include "worker/update/local_sgd_part.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::worker {

absl::StatusOr<std::shared_ptr<LocalSgdPart>> LocalSgdPart::Create(ServerLink& link,
                                                                   PartShards shards,
                                                                   const Config& config) {
  COVEY_CHECK(config.rounds.steps >= 1 && config.rounds.overlap < config.rounds.steps &&
              config.rounds.offset < config.rounds.steps);
  COVEY_ASSIGN_OR_RETURN(MemberShards inner, MemberShards::Create(config.inner, shards.shards));
  return std::shared_ptr<LocalSgdPart>(
      new LocalSgdPart(link, std::move(shards), config, std::move(inner)));
}

LocalSgdPart::LocalSgdPart(ServerLink& link, PartShards shards, const Config& config,
                           MemberShards inner)
    : link_(link),
      shards_(std::move(shards)),
      rounds_(config.rounds),
      inner_(std::move(inner)),
      start_(inner_.values().size()),
      pulled_(inner_.values().size()) {}

void LocalSgdPart::Apply(absl::Time now, PartStep step, Outbox& outbox) {
  COVEY_CHECK(fetched_ && !waiting_);
  const absl::Status applied =
      inner_.Apply(step.sum, step.samples, step.RateFactorOf(shards_.piece));
  if (!applied.ok()) {
    step.done(
        now,
        Annotate(absl::StrCat("tensor ", shards_.name, " in step ", step.step.value()), applied),
        outbox);
    return;
  }
  samples_ += step.samples;
  call_ = Call::kApply;
  waiting_ = std::move(step);
  if (rounds_.EndsWith(waiting_->step)) {
    Push(now, waiting_->step, start_, inner_.values(), std::exchange(samples_, 0),
         waiting_->deadline, outbox);
  }
  Continue(now, outbox);
}

void LocalSgdPart::Fetch(absl::Time now, PartStep step, Outbox& outbox) {
  COVEY_CHECK(!waiting_);
  call_ = Call::kFetch;
  waiting_ = std::move(step);
  if (std::exchange(resumed_, false)) {
    Finish(now, absl::OkStatus(), outbox);
  } else if (round_) {
    round_->merge_at = Step();
    Continue(now, outbox);
  } else {
    Pull(now, outbox);
  }
}

void LocalSgdPart::Resume(absl::Time now, const RoundMemory::Round& round, absl::Time deadline,
                          Outbox& outbox) {
  COVEY_CHECK(!fetched_ && !waiting_);
  std::copy(round.values.begin(), round.values.end(), inner_.values().begin());
  inner_.SkipTo(round.all_samples);
  start_.assign(round.start.begin(), round.start.end());
  samples_ = round.samples;
  fetched_ = true;
  resumed_ = true;
  if (!round.pushed) return;
  const auto& [step, start, values, samples] = *round.pushed;
  Push(now, step, start, values, samples, deadline, outbox);
}

void LocalSgdPart::Push(absl::Time now, Step step, std::span<const float> start,
                        std::span<const float> values, uint64_t samples, absl::Time deadline,
                        Outbox& outbox) {
  COVEY_CHECK(!round_);
  round_ = Round{
      .merge_at = Step(step.value() + rounds_.overlap),
      .change = std::vector<float>(values.size()),
      .pushed_at = {values.begin(), values.end()},
      .outer = std::vector<float>(values.size()),
  };
  Round& round = *round_;
  const float weight = static_cast<float>(samples);
  for (size_t i = 0; i < values.size(); ++i) round.change[i] = weight * (start[i] - values[i]);
  client::Operation operation = OperationOn(shards_, round.outer);
  operation.gradient = round.change;
  operation.samples = samples;
  operation.deadline = deadline;
  link_.Start(
      now, std::move(operation), Step(rounds_.RoundsAt(step)),
      [self = shared_from_this()](absl::Time now, const absl::Status& status, Outbox& outbox) {
        self->failure_.Update(status);
        self->round_->answered = true;
        self->Continue(now, outbox);
      },
      outbox);
}

void LocalSgdPart::Pull(absl::Time now, Outbox& outbox) {
  client::Operation operation = OperationOn(shards_, pulled_);
  operation.deadline = waiting_->deadline;
  link_.Start(
      now, std::move(operation), Step(),
      [self = shared_from_this()](absl::Time now, const absl::Status& status, Outbox& outbox) {
        if (status.ok()) self->Rebase();
        self->Finish(now, status, outbox);
      },
      outbox);
}

void LocalSgdPart::Continue(absl::Time now, Outbox& outbox) {
  if (!waiting_) return;
  if (!failure_.ok()) {
    Finish(now, failure_, outbox);
    return;
  }
  if (round_ && waiting_->step >= round_->merge_at) {
    if (!round_->answered) return;
    Merge();
  }
  if (call_ == Call::kFetch) {
    Pull(now, outbox);
  } else {
    Finish(now, absl::OkStatus(), outbox);
  }
}

void LocalSgdPart::Merge() {
  const std::span<float> values = inner_.values();
  const std::vector<float>& outer = round_->outer;
  if (rounds_.overlap == 0) {
    std::copy(outer.begin(), outer.end(), values.begin());
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = outer[i] + (values[i] - round_->pushed_at[i]);
    }
  }
  start_ = outer;
  round_.reset();
}

void LocalSgdPart::Rebase() {
  const std::span<float> values = inner_.values();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = fetched_ ? pulled_[i] + (values[i] - start_[i]) : pulled_[i];
  }
  start_ = pulled_;
  fetched_ = true;
}

void LocalSgdPart::Finish(absl::Time now, const absl::Status& status, Outbox& outbox) {
  const PartStep step = std::move(*waiting_);
  waiting_.reset();
  const std::span<const float> values = inner_.values();
  if (status.ok()) std::copy(values.begin(), values.end(), step.values.begin());
  step.done(now, status, outbox);
}

PartStep LocalUpdate::Narrow(const PartStep& step, const PartRange& range, PartStep::Done done) {
  PartStep narrow = step;
  if (!step.sum.empty()) narrow.sum = step.sum.subspan(range.first, range.count);
  narrow.values = step.values.subspan(range.first, range.count);
  narrow.done = std::move(done);
  return narrow;
}

void LocalUpdate::Apply(absl::Time now, PartStep step, Outbox& outbox) {
  step.sum_memory = Buffer();
  const auto all = AfterAll(machines_.size(), step.done);
  const GroupRound round = group_.round();
  for (const auto& machine : machines_) {
    machine->Apply(
        now,
        Narrow(step, machine->shards().elements,
               [this, round, all](absl::Time now, const absl::Status& status, Outbox& outbox) {
                 if (!status.ok() && group_.round() == round) {
                   group_.Abort(now, status, outbox);
                 }
                 all(now, status, outbox);
               }),
        outbox);
  }
}

void LocalUpdate::Fetch(absl::Time now, PartStep step, Outbox& outbox) {
  const auto all = AfterAll(machines_.size(), step.done);
  for (const auto& machine : machines_) {
    machine->Fetch(now, Narrow(step, machine->shards().elements, all), outbox);
  }
}

void LocalUpdate::Resume(absl::Time now, const RoundMemory& memory, const PartRange& part,
                         absl::Time deadline, Outbox& outbox) {
  for (const auto& machine : machines_) {
    PartRange range = machine->shards().elements;
    range.first += part.first;
    machine->Resume(now, memory.At(range), deadline, outbox);
  }
}

}  // namespace covey::worker
