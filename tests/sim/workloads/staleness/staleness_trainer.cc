// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/staleness/staleness_trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which the script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kFlushPatience = absl::Seconds(20);

}  // namespace

StalenessTrainer::StalenessTrainer(const Options& options, Random random)
    : run_(options),
      random_(random),
      table_(options.plan.Spec()),
      watch_(kStaleness, options.violations),
      think_max_(options.think_max * (0.3 + random_.Uniform())),
      leaves_early_(random_.Chance(0.25)) {}

void StalenessTrainer::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  watch_.Check(now);
  const proto::Table* table = table_.Advance(now, client, outbox);
  if (!table_.refusal().ok()) run_.violations.Add(kStaleness, table_.refusal().ToString());
  const proto::Group* group = client.member().view()->GroupOf(client.member().node());
  if (group == nullptr) {
    // A worker that is late, or has returned, waits for a group, but not forever.
    done_ = done_ || run_.last_steps.EveryDeathIsNoticed();
    next_ = now + kLookAgain;
    return;
  }
  if (group->state() != proto::Group::ACTIVE) done_ = true;
  gives_way_ = gives_way_ || !MayTrain(client, *group);
  if (gives_way_ && !done_) return GiveWay(now, client, outbox);
  if (done_ || under_way_ || now < next_) return;
  if (step_ == 0) Join(*group);
  next_ = now + kLookAgain;
  if (table != nullptr) Train(now, *table, *group, client, outbox);
}

absl::Time StalenessTrainer::NextWake() const {
  return std::min(watch_.NextWake(), under_way_ || done_ ? absl::InfiniteFuture() : next_);
}

// Only the first member trains for its group; and the values have room for a limited number of
// groups.
bool StalenessTrainer::MayTrain(client::ClientActor& client, const proto::Group& group) const {
  return group.members(0) == client.member().node().value() &&
         run_.truth.PositionOf(GroupId(group.id())) < StalenessPlan::kPositionsMax;
}

// Under bsp and local, a shard that was lost with its server waits for the steps that some groups
// had pushed before and will not push again: the job has to be restarted.
bool StalenessTrainer::IsBeyondRepair() const {
  return run_.plan.waits_for_steps() && run_.truth.HistoryWasLost() &&
         run_.last_steps.EveryDeathIsNoticed();
}

// Another member continues with the group. Only this client can resend its own pushes to a server
// that takes over, so it stays, as an ending program does, until they are durable or no server
// dies any more.
void StalenessTrainer::GiveWay(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  next_ = absl::InfiniteFuture();
  if (flushing_) return;
  flushing_ = true;
  const absl::Time deadline = now + kFlushPatience;
  const uint64_t watched = watch_.Begin(deadline);
  client.engine().Flush(
      now, client::RequestEngine::FlushScope::kAll, deadline,
      [this, watched](absl::Time at, const absl::Status& status, Outbox&) {
        watch_.End(watched);
        GaveWay(at, status);
      },
      outbox);
}

void StalenessTrainer::GaveWay(absl::Time now, const absl::Status& flushed) {
  flushing_ = false;
  next_ = now;
  done_ = !absl::IsDeadlineExceeded(flushed) || run_.last_steps.EveryDeathIsNoticed();
  if (!IsExpectedOfPush(flushed, run_.truth.HistoryWasLost())) {
    run_.violations.Add(kStaleness, absl::StrCat("flush: ", flushed.ToString()));
  }
}

// A late group begins at its first step. A new member of a group continues at the last begun step,
// whose push by the previous member may not have arrived.
void StalenessTrainer::Join(const proto::Group& group) {
  const uint64_t begun = run_.progress.begun[GroupId(group.id())];
  step_ = std::max(begun, std::max<uint64_t>(1, group.first_step()) - 1);
  again_ = begun > 0;
  if (step_ > 0) ++run_.progress.joined_late;
}

void StalenessTrainer::Train(absl::Time now, const proto::Table& table, const proto::Group& group,
                             client::ClientActor& client, Outbox& outbox) {
  const bool ordinary_are_over = step_ >= run_.plan.ordinary_steps && !again_;
  if ((ordinary_are_over && leaves_early_) || IsBeyondRepair()) {
    done_ = true;
    return;
  }
  const GroupId id(group.id());
  if (ordinary_are_over && !run_.last_steps.MayBegin(id, *client.member().view())) return;
  if (step_ >= run_.plan.steps() && !again_) {
    run_.progress.finished.insert(id);
    next_ = absl::InfiniteFuture();
    return;
  }
  if (!again_) ++step_;
  run_.progress.begun[id] = step_;
  client.member().progress().set_step(step_);
  Push(now, table, group, client, outbox);
}

void StalenessTrainer::Push(absl::Time now, const proto::Table& table, const proto::Group& group,
                            client::ClientActor& client, Outbox& outbox) {
  const GroupId id(group.id());
  const uint64_t element = run_.truth.ElementOf(id, covey::Step(step_));
  gradient_.assign(run_.plan.shards * run_.plan.elements(), 0);
  for (uint32_t i = 0; i < run_.plan.shards; ++i) {
    gradient_[i * run_.plan.elements() + element] = -1;
  }
  values_.assign(gradient_.size(), 0);
  const bool pull_too = random_.Chance(0.6);
  client::Operation push{.table = TableId(table.id()),
                         .gradient = gradient_,
                         .group = client::GroupIdentity{id, group.generation(), covey::Step(step_)},
                         .deadline = Deadline(now)};
  if (pull_too) {
    push.values = values_;
    push.read = Bound(group);
  }
  push.done = [this, &client, pull_too](absl::Time at, const client::OperationResult& result,
                                        Outbox& out) {
    Pushed(at, result.status, pull_too, client, out);
  };
  Start(now, std::move(push), client, outbox);
}

void StalenessTrainer::Pushed(absl::Time now, const absl::Status& status, bool pulled,
                              client::ClientActor& client, Outbox& outbox) {
  under_way_ = false;
  const ClusterView& view = *client.member().view();
  const proto::Group* group = view.GroupOf(client.member().node());
  if (group == nullptr) return;
  // Under bsp and local no group may skip a step, since the others would wait for it. The same
  // push is sent again.
  again_ = !status.ok() && (run_.plan.waits_for_steps() || random_.Chance(0.5));
  if (!status.ok() && !again_) {
    run_.truth.GaveUp(GroupId(group->id()), covey::Step(step_));
  } else if (status.ok() && !pulled) {
    const proto::Table* table = view.FindTable(run_.plan.Spec().name());
    client::Operation pull{.table = TableId(table->id()),
                           .values = values_,
                           .read = Bound(*group),
                           .deadline = Deadline(now)};
    pull.done = [this](absl::Time at, const client::OperationResult& read, Outbox&) {
      Ended(at, read.status);
    };
    return Start(now, std::move(pull), client, outbox);
  }
  Ended(now, status);
}

void StalenessTrainer::Start(absl::Time now, client::Operation operation,
                             client::ClientActor& client, Outbox& outbox) {
  under_way_ = true;
  const uint64_t watched = watch_.Begin(operation.deadline);
  operation.done = [this, watched, done = std::move(operation.done)](
                       absl::Time at, const client::OperationResult& result, Outbox& out) {
    watch_.End(watched);
    done(at, result, out);
  };
  const absl::Status status = client.engine().Start(now, std::move(operation), outbox);
  if (status.ok()) return;
  watch_.End(watched);
  run_.violations.Add(kStaleness, absl::StrCat("refused at once: ", status.ToString()));
  done_ = true;
}

void StalenessTrainer::Ended(absl::Time now, const absl::Status& status) {
  under_way_ = false;
  next_ = now + think_max_ * random_.Uniform();
  status.ok() ? ++run_.progress.succeeded : ++run_.progress.failed;
  const bool must_succeed = step_ > run_.plan.ordinary_steps || MayNotFail();
  if (!IsExpectedOfPush(status, run_.truth.HistoryWasLost()) || (!status.ok() && must_succeed)) {
    run_.violations.Add(kStaleness, absl::StrCat("step ", step_, ": ", status.ToString()));
  }
}

absl::Time StalenessTrainer::Deadline(absl::Time now) {
  const bool last = step_ > run_.plan.ordinary_steps;
  return now + (last || MayNotFail()
                    ? absl::Seconds(60)
                    : absl::Milliseconds(200) + run_.plan.deadline_max * random_.Uniform());
}

client::ReadBound StalenessTrainer::Bound(const proto::Group& group) {
  client::ReadBound bound{.step = covey::Step(step_), .group = GroupId(group.id())};
  // A full buffer may be a condition of such a bound, and the last steps must not wait for one.
  if (step_ <= run_.plan.ordinary_steps && !MayNotFail() && random_.Chance(0.1)) {
    bound.max_staleness = random_.Below(4);
  }
  return bound;
}

}  // namespace covey::sim
