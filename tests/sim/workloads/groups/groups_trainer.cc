// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/groups_trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/view.h"
#include "common/contract/contract.h"
#include "tests/sim/workloads/groups/own_steps.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which the script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kLastPatience = absl::Seconds(60);
constexpr double kAwayChance = 0.1;  // after each step

// Whether the program was asked to leave.
bool Drains(worker::WorkerActor& worker) {
  const Member& member = worker.client().member();
  const proto::Node* node = member.view()->FindNode(member.node());
  return node != nullptr && node->draining();
}

}  // namespace

GroupsTrainer::GroupsTrainer(const Options& options, std::string name, Random random)
    : run_(options),
      name_(std::move(name)),
      random_(random),
      pending_(name_, options.violations),
      step_(options.plan.hybrid.lag, options.given) {
  run_.finished.erase(name_);
  for (size_t i = 0; i < run_.plan.tables.size(); ++i) tensors_.emplace_back(run_.plan.Spec(i));
}

absl::Time GroupsTrainer::NextWake() const {
  if (done_) return absl::InfiniteFuture();
  return pending_.empty() ? next_ : std::min(pending_.NextWake(), next_submit_);
}

void GroupsTrainer::Step(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  if (done_) return;
  step_.NoteMove(worker);
  pending_.Stretch(worker.group().deadline_floor_of_all());
  pending_.Check(now, step_.step());
  if (phase_ == Phase::kSubmit && !failed_) SubmitWhatIsDue(now, worker, outbox);
  if (!pending_.empty()) return;
  if (failed_ || !worker.group().failure().ok()) {
    worker.hybrid().Close();
    return End(absl::StrCat("its group: ", worker.group().failure().ToString()));
  }
  if (now < next_) return;
  next_ = now + kLookAgain;
  switch (phase_) {
    case Phase::kTables:
      if (HasGroup(worker) && SetTables(now, worker, outbox)) PullAll(now, worker, outbox);
      return;
    case Phase::kPull:
    case Phase::kSubmit:
    case Phase::kFlush:
      return EndPhase(now, worker);
    case Phase::kThink:
      return Think(now, worker, outbox);
  }
}

bool GroupsTrainer::HasGroup(worker::WorkerActor& worker) {
  const Member& member = worker.client().member();
  const proto::Group* group = member.view()->GroupOf(member.node());
  // A worker that is late, or has returned, waits for a group, but not forever. A worker whose
  // group has ended waits no longer.
  if (group == nullptr) {
    if (Drains(worker)) End("it was asked to leave before it was in a group");
    if (run_.last_steps.EveryDeathIsNoticed()) End("there is no group for it");
    return false;
  }
  if (group->state() != proto::Group::ACTIVE) End("its group is over");
  if (run_.truth.PositionOf(GroupId(group->id())) >= run_.plan.positions()) {
    End("the values have no room for its group");
  }
  // The group admits members between two steps, but its programs take no more steps and leave.
  const bool others_finished = std::any_of(
      run_.finished.begin(), run_.finished.end(),
      [&](const auto& finished) { return member.view()->GroupOf(finished.second) == group; });
  if (others_finished && !worker.group().ready() && run_.last_steps.EveryDeathIsNoticed()) {
    End("its group finished without it");
  }
  return !done_ && worker.group().ready();
}

bool GroupsTrainer::SetTables(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  std::vector<TableId> tables;
  for (Tensor& tensor : tensors_) {
    const proto::Table* table = tensor.table.Advance(now, worker.client(), outbox);
    if (!tensor.table.refusal().ok()) {
      run_.violations.Add(kGroups, tensor.table.refusal().ToString());
    }
    if (table != nullptr) tables.push_back(TableId(table->id()));
  }
  if (tables.size() < tensors_.size()) return false;
  const absl::Status set = worker.hybrid().SetTables(tables, run_.plan.hybrid, Patience());
  if (!set.ok()) {
    run_.violations.Add(kGroups, absl::StrCat("tables: ", set.ToString()));
    return false;
  }
  step_.SetTables(std::move(tables));
  for (size_t t = 0; t < tensors_.size(); ++t) {
    tensors_[t].gradient.assign(worker.hybrid().element_count(t), 0);
    tensors_[t].values.assign(worker.hybrid().element_count(t), 0);
  }
  return true;
}

void GroupsTrainer::PullAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  phase_ = Phase::kPull;
  step_.BeginPull(worker);
  for (size_t t = 0; t < tensors_.size(); ++t) {
    worker.hybrid().Pull(now, RequestFor(now, t, worker), outbox);
  }
  // Checks at once for operations that have already ended.
  next_ = now;
}

void GroupsTrainer::Think(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  const Member& member = worker.client().member();
  const uint64_t ended = worker.hybrid().step().value();
  // Between its steps no error tells it that it should leave.
  if (ended >= run_.plan.ordinary_steps && Drains(worker)) {
    run_.finished.erase(name_);
    return End("it was asked to leave");
  }
  if (IsBeyondRepair()) return End("others wait for steps that were lost");
  if (ended >= run_.plan.steps()) {
    if (run_.plan.hybrid.lag > 0 && step_.step().value() > 0 && run_.finished.count(name_) == 0) {
      return FlushAll(now, worker, outbox);
    }
    run_.finished[name_] = member.node();
    return;
  }
  if (ended < run_.plan.ordinary_steps ||
      run_.last_steps.MayBegin(worker.group().id(), *member.view())) {
    Begin(now, worker, outbox);
  }
}

void GroupsTrainer::Begin(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  phase_ = Phase::kSubmit;
  worker.SetBack(now);
  worker.hybrid().BeginStep(now, outbox);
  step_.Begin(worker);
  const uint64_t step = step_.step().value();
  position_ = run_.truth.PositionOf(step_.group());
  proto::Progress& progress = worker.client().member().progress();
  progress.set_step(step);
  progress.set_group(step_.group().value());
  progress.set_group_step(step - 1);
  samples_ = SamplesOf(run_.step_draws.Split(step_.group().value()).Split(step), run_.plan.samples,
                       worker.group().rank(), worker.group().size());
  // Ranks may change before the step begins, and some member needs an example. The same holds for
  // survivors when other members die.
  if (run_.plan.elastic || !run_.cluster.config().quiet) ++samples_;
  for (Tensor& tensor : tensors_) {
    tensor.submit_at = now + run_.think_max * (0.2 * random_.Uniform());
  }
  SubmitWhatIsDue(now, worker, outbox);
}

void GroupsTrainer::SubmitWhatIsDue(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  const uint64_t element = position_ * run_.plan.steps() + step_.step().value() - 1;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    Tensor& tensor = tensors_[t];
    if (tensor.submit_at > now) continue;
    tensor.submit_at = absl::InfiniteFuture();
    std::fill(tensor.gradient.begin(), tensor.gradient.end(), 0);
    for (size_t first = 0; first < tensor.gradient.size(); first += run_.plan.elements()) {
      // -0 would be a gradient, too, but in the values it marks elements that no push has changed.
      if (element < run_.plan.elements()) tensor.gradient[first + element] = Gradient();
    }
    step_.Give(worker, t);
    if (run_.plan.by_program()) {
      run_.means.Given(name_, PlaceOf(t), {.value = Gradient(), .samples = samples_});
    }
    worker.hybrid().Submit(now, RequestFor(now, t, worker), outbox);
  }
  step_.NoteMove(worker);
  next_submit_ = absl::InfiniteFuture();
  for (const Tensor& tensor : tensors_) next_submit_ = std::min(next_submit_, tensor.submit_at);
  // Checks at once for operations that have already ended.
  next_ = next_submit_ < absl::InfiniteFuture() ? next_submit_ : now;
}

void GroupsTrainer::FlushAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) {
  phase_ = Phase::kFlush;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    worker.hybrid().Flush(now, RequestFor(now, t, worker), outbox);
  }
  next_ = now;
}

void GroupsTrainer::EndPhase(absl::Time now, worker::WorkerActor& worker) {
  if (next_submit_ < absl::InfiniteFuture()) return;
  if (phase_ == Phase::kSubmit) run_.cluster.simulator().Count("group_step_ended");
  if (phase_ == Phase::kFlush) run_.finished[name_] = worker.client().member().node();
  phase_ = Phase::kThink;
  next_ = now + run_.think_max * random_.Uniform();
  const bool is_ordinary = worker.hybrid().step().value() < run_.plan.ordinary_steps;
  if (run_.plan.away && is_ordinary && random_.Chance(kAwayChance)) GoAway(now, worker);
}

void GroupsTrainer::GoAway(absl::Time now, worker::WorkerActor& worker) {
  const absl::Duration away = run_.patience * (0.5 + random_.Uniform());
  // It may return before the announced time, or somewhat after it.
  worker.SetAway("evaluation", now + away * (0.8 + random_.Uniform()));
  next_ = now + away;
  run_.cluster.simulator().Count("member_away");
}

worker::TensorRequest GroupsTrainer::RequestFor(absl::Time now, size_t t,
                                                worker::WorkerActor& worker) {
  const absl::Time deadline = now + Patience();
  pending_.Begin(t, deadline);
  worker::TensorRequest request{.tensor = t,
                                .gradient = tensors_[t].gradient,
                                .values = tensors_[t].values,
                                .samples = samples_,
                                .deadline = deadline,
                                .mean_samples = &tensors_[t].mean_samples};
  request.done = [this, t, &worker](absl::Time, const absl::Status& status, Outbox&) {
    Ended(t, status, worker);
  };
  return request;
}

void GroupsTrainer::Ended(size_t t, const absl::Status& status, worker::WorkerActor& worker) {
  pending_.End(t);
  if (status.ok()) {
    Succeeded(t, worker);
  } else {
    Failed(t, status, worker);
  }
}

void GroupsTrainer::Failed(size_t t, const absl::Status& status, worker::WorkerActor& worker) {
  next_submit_ = absl::InfiniteFuture();
  failed_ = true;
  step_.TakeBack(worker, t);
  if (absl::IsCancelled(status) && Drains(worker)) {
    run_.cluster.simulator().Count("worker_drained");
    return;
  }
  const uint64_t step = step_.step().value();
  const std::string what = absl::StrCat("step ", step, " tensor ", t);
  // A distributed group breaks when it loses a member.
  const bool broke = run_.plan.distributed() && absl::IsFailedPrecondition(status);
  if (!broke) run_.results.Failed(name_, what, status);
  // A group that admits or releases members may break while it does.
  if (step > run_.plan.ordinary_steps && !run_.plan.elastic && !run_.truth.HistoryWasLost()) {
    run_.violations.Add(kGroups,
                        absl::StrCat(what, " of ", name_,
                                     ", when nothing went wrong any more: ", status.ToString()));
  }
}

void GroupsTrainer::Succeeded(size_t t, worker::WorkerActor& worker) {
  const bool pulled = phase_ == Phase::kPull;
  const MemberStep::Ended ended =
      phase_ == Phase::kFlush ? MemberStep::Ended::kAllSteps : MemberStep::Ended::kStep;
  if (!pulled) step_.Finish(worker, t, ended);
  // A member that retries a step, after a death or a loss, may find that others have its values
  // already; then it pulls them, together with later pushes of other groups.
  const bool comparable = !step_.GroupChanged(worker) || run_.plan.positions() == 1;
  // A member that is late gets the present values, which may be another step's.
  if (comparable && step_.SteppedAside(worker)) return;
  if (comparable) {
    run_.results.Succeeded(name_,
                           {.round = worker.group().round(),
                            .step = pulled ? covey::Step() : worker.hybrid().step(),
                            .phase = static_cast<int>(phase_)},
                           t, tensors_[t].values);
  }
  if (pulled) return;
  if (run_.plan.by_program()) {
    CheckMean(t, worker);
  } else {
    CheckOwnSteps(t, ended);
  }
}

float GroupsTrainer::Gradient() const {
  if (!run_.plan.by_program()) return -1;
  // Shows whose it is and of which step.
  return -static_cast<float>((1 + run_.index) * (1 + step_.step().value() % 5));
}

void GroupsTrainer::CheckMean(size_t t, worker::WorkerActor& worker) {
  MeanTruth::Mean mean{.values = tensors_[t].values,
                       .samples = tensors_[t].mean_samples,
                       .node = worker.client().member().node()};
  const uint64_t element = position_ * run_.plan.steps() + step_.step().value() - 1;
  if (element < run_.plan.elements()) {
    for (size_t first = 0; first < mean.values.size(); first += run_.plan.elements()) {
      mean.elements.push_back(first + element);
    }
  }
  run_.means.Got(name_, PlaceOf(t), mean);
}

void GroupsTrainer::CheckOwnSteps(size_t t, MemberStep::Ended ended) {
  if (!run_.plan.distributed() && run_.truth.HistoryWasLost()) return;
  // A member that came after the last step has none of its own; it only pulls and flushes.
  if (step_.first() == covey::Step()) return;
  const std::string missing =
      MissingOwnStep(run_.plan, t, tensors_[t].values,
                     {.position = position_, .first = step_.first(), .last = step_.LastIn(ended)});
  if (missing.empty()) return;
  run_.violations.Add(
      kGroups, absl::StrCat(name_, " finished step ", step_.step().value(), " and ", missing));
}

// Under bsp, a shard that was lost with its server waits for steps that some groups will not push
// again: the job has to be restarted.
bool GroupsTrainer::IsBeyondRepair() const {
  return run_.plan.HasContract(Contract::Kind::kBsp) && !run_.plan.distributed() &&
         !run_.plan.by_program() && run_.truth.HistoryWasLost() &&
         run_.last_steps.EveryDeathIsNoticed();
}

absl::Duration GroupsTrainer::Patience() const {
  return step_.step().value() > run_.plan.ordinary_steps ? kLastPatience : run_.patience;
}

void GroupsTrainer::End(absl::string_view why) {
  done_ = true;
  run_.cluster.simulator().Trace(absl::StrCat(name_, " ends: ", why));
}

}  // namespace covey::sim
