// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/snapshot_trainer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/requests/key_batch.h"
#include "common/cluster/view.h"
#include "tests/sim/checkers/step_rows.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which the script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kFlushPatience = absl::Seconds(20);

std::shared_ptr<const KeyBatch> BatchOfStep(const proto::Table& table, uint64_t element) {
  std::vector<uint64_t> ends;
  for (const proto::Shard& shard : table.shards()) {
    ends.push_back(shard.first_element() + shard.element_count());
  }
  auto batch = std::make_shared<KeyBatch>();
  batch->Assign(KeysOfStep(table, element), ends);
  return batch;
}

}  // namespace

SnapshotTrainer::SnapshotTrainer(const Options& options, Random random)
    : run_(options),
      random_(random),
      creations_{TableCreation(options.plan.Spec()), TableCreation(options.plan.RareSpec()),
                 TableCreation(options.plan.RowSpec())},
      watch_(kSnapshot, options.violations),
      examples_(options.plan, options.violations),
      think_max_(options.think_max * (0.3 + random_.Uniform())) {}

void SnapshotTrainer::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  watch_.Check(now);
  // A process that was started in the first job may register with the next one.
  if (job_ == 0) job_ = run_.progress.job;
  const bool has_tables = HasTables(now, client, outbox);
  const proto::Group* group = client.member().view()->GroupOf(client.member().node());
  has_group_ = group != nullptr;
  if (!has_group_) {
    // A worker that is late, or has returned, waits for a group, but not forever.
    done_ = done_ || (is_last_job() && run_.progress.EveryDeathIsNoticed());
    next_ = now + kLookAgain;
    return;
  }
  // As the worker's own heartbeats do, before its first step in the group.
  if (proto::Progress& told = client.member().progress(); told.group() != group->id()) {
    told.set_group(group->id());
    told.set_group_step(0);
  }
  const bool is_over = group->state() != proto::Group::ACTIVE ||
                       run_.progress.finished.contains(GroupId(group->id()));
  if ((is_over || IsBeyondRepair()) && !under_way_) done_ = true;
  if (first_step_ > 0 && !done_) examples_.Step(now, client, outbox);
  if (done_ || under_way_ || now < next_) return;
  next_ = now + kLookAgain;
  const bool led = std::exchange(leads_, group->members(0) == client.member().node().value());
  if (!leads_) return Follow(*group, client);
  if (!has_tables) return;
  if (first_step_ == 0 || !led) Join(*group);
  Train(now, *group, client, outbox);
}

bool SnapshotTrainer::IsUsed(Which which) const {
  return which == Which::kEach || (which == Which::kRare && run_.plan.rare_every > 0) ||
         (which == Which::kRows && run_.plan.sparse);
}

// One after the other, so that the ids of tables do not depend on messages.
bool SnapshotTrainer::HasTables(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  for (size_t i = 0; i < kTables; ++i) {
    if (!IsUsed(static_cast<Which>(i))) continue;
    const proto::Table* table = creations_[i].Advance(now, client, outbox);
    if (!creations_[i].refusal().ok()) {
      run_.violations.Add(kSnapshot, creations_[i].refusal().ToString());
    }
    if (table == nullptr) return false;
    ids_[i] = TableId(table->id());
  }
  return true;
}

std::optional<SnapshotTrainer::Which> SnapshotTrainer::After(Which which) const {
  if (which == Which::kEach && run_.plan.IsRare(step_)) return Which::kRare;
  if (which != Which::kRows && run_.plan.sparse) return Which::kRows;
  return std::nullopt;
}

void SnapshotTrainer::Follow(const proto::Group& group, client::ClientActor& client) {
  const GroupId id(group.id());
  const uint64_t before = std::max<uint64_t>(1, group.first_step()) - 1;
  const uint64_t taken = std::max(before, run_.progress.taken[id]);
  client.member().progress().set_step(taken - before);
  client.member().progress().set_group_step(taken);
  for (proto::WorkItem& item : std::exchange(batch_, {})) followed_.push_back(std::move(item));
  again_ = false;
  if (followed_group_ == id && followed_step_.value() <= taken) {
    for (const proto::WorkItem& item : followed_) {
      run_.examples.Trained(client.member().node(), id, followed_step_, item);
    }
    examples_.Finish(followed_step_.value(), std::exchange(followed_, {}));
  }
  if (!followed_.empty() && followed_group_ == id) return;
  if (followed_.empty()) followed_ = examples_.Take(run_.plan.step_examples);
  followed_group_ = id;
  followed_step_ = covey::Step(taken + 1);
}

bool SnapshotTrainer::IsBeyondRepair() const {
  return (is_last_job() || !run_.progress.cut->has_published()) && run_.plan.waits_for_steps() &&
         run_.progress.cut->history_was_lost() && run_.progress.EveryDeathIsNoticed();
}

absl::Time SnapshotTrainer::NextWake() const {
  const absl::Time next = under_way_ || done_ ? absl::InfiniteFuture() : next_;
  // As Step lets the examples go on.
  const bool trains = has_group_ && first_step_ > 0 && !done_;
  return std::min(
      {watch_.NextWake(), trains ? examples_.NextWake() : absl::InfiniteFuture(), next});
}

// A new member continues at the last begun step, whose push by the previous member may not have
// arrived.
void SnapshotTrainer::Join(const proto::Group& group) {
  first_step_ = std::max<uint64_t>(1, group.first_step());
  const uint64_t begun = run_.progress.begun[GroupId(group.id())];
  step_ = std::max(begun, first_step_ - 1);
  again_ = begun > 0;
}

void SnapshotTrainer::Train(absl::Time now, const proto::Group& group, client::ClientActor& client,
                            Outbox& outbox) {
  const GroupId id(group.id());
  const bool is_finished =
      is_last_job() && examples_.done() && step_ + 1 >= first_step_ + run_.plan.steps;
  if (is_finished && !again_) return Leave(now, id, client, outbox);
  const std::optional<uint64_t> element = run_.progress.ElementOf(id, again_ ? step_ : step_ + 1);
  if (!element) return is_last_job() ? Leave(now, id, client, outbox) : void();
  if (!again_) {
    ++step_;
    batch_ = examples_.Take(1 + random_.Below(run_.plan.step_examples));
    for (proto::WorkItem& item : std::exchange(followed_, {})) batch_.push_back(std::move(item));
  }
  run_.progress.begun[id] = step_;
  Push(now, Which::kEach, group, *element, client, outbox);
}

void SnapshotTrainer::Push(absl::Time now, Which which, const proto::Group& group, uint64_t element,
                           client::ClientActor& client, Outbox& outbox) {
  const GroupId id(group.id());
  const absl::Time deadline =
      now + absl::Milliseconds(200) + run_.plan.deadline_max * random_.Uniform();
  const uint64_t watched = watch_.Begin(deadline);
  client::Operation push = MakePush(which, element, client);
  push.group = client::GroupIdentity{id, group.generation(), covey::Step(step_)};
  push.read = {.step = covey::Step(step_), .group = id};
  push.deadline = deadline;
  push.done = [this, watched, which, group, element, &client](
                  absl::Time at, const client::OperationResult& result, Outbox& next) {
    watch_.End(watched);
    const std::optional<Which> further = After(which);
    if (result.status.ok() && further) return Push(at, *further, group, element, client, next);
    Pushed(at, GroupId(group.id()), result.status, client);
  };
  under_way_ = true;
  const absl::Status status = client.engine().Start(now, std::move(push), outbox);
  if (status.ok()) return;
  watch_.End(watched);
  run_.violations.Add(kSnapshot, absl::StrCat("refused at once: ", status.ToString()));
  done_ = true;
}

client::Operation SnapshotTrainer::MakePush(Which which, uint64_t element,
                                            client::ClientActor& client) {
  const TableId table = ids_[static_cast<size_t>(which)];
  if (which == Which::kRows) {
    const std::shared_ptr<const KeyBatch> batch =
        BatchOfStep(*client.member().view()->FindTable(table), element);
    gradient_.assign(batch->distinct() * kRowColumns, 0);
    for (size_t row = 0; row < batch->distinct(); ++row) {
      gradient_[row * kRowColumns + ColumnOf(element)] = -1;
    }
    values_.assign(gradient_.size(), 0);
    return {.table = table,
            .keyed = client::KeyedOperation{.batch = batch, .pushes = true, .pulls = true},
            .gradient = gradient_,
            .values = values_,
            .format = run_.plan.row_format()};
  }
  gradient_.assign(run_.plan.shards * SnapshotPlan::kElements, 0);
  for (uint32_t i = 0; i < run_.plan.shards; ++i) {
    gradient_[i * SnapshotPlan::kElements + element] = -1;
  }
  values_.assign(gradient_.size(), 0);
  return {.table = table, .gradient = gradient_, .values = values_, .format = run_.plan.format};
}

void SnapshotTrainer::Pushed(absl::Time now, GroupId group, const absl::Status& status,
                             client::ClientActor& client) {
  under_way_ = false;
  next_ = now + think_max_ * random_.Uniform();
  // A trainer that has survived its job is refused in one way or another.
  if (!IsExpectedOfPush(status, run_.progress.cut->history_was_lost()) &&
      job_ == run_.progress.job) {
    run_.violations.Add(kSnapshot, absl::StrCat("step ", step_, ": ", status.ToString()));
  }
  again_ = !status.ok();
  if (again_) return;
  ++run_.progress.steps;
  for (const proto::WorkItem& item : batch_) {
    samples_ += item.count();
    run_.examples.Trained(client.member().node(), group, covey::Step(step_), item);
  }
  examples_.Finish(step_, std::exchange(batch_, {}));
  run_.progress.taken[group] = step_;
  client.member().progress().set_step(step_ + 1 - first_step_);
  client.member().progress().set_group(group.value());
  client.member().progress().set_group_step(step_);
  client.member().progress().set_samples(samples_);
}

void SnapshotTrainer::Leave(absl::Time now, GroupId group, client::ClientActor& client,
                            Outbox& outbox) {
  under_way_ = true;
  const absl::Time deadline = now + kFlushPatience;
  const uint64_t watched = watch_.Begin(deadline);
  client.engine().Flush(
      now, client::RequestEngine::FlushScope::kAll, deadline,
      [this, watched, group](absl::Time at, const absl::Status& status, Outbox&) {
        watch_.End(watched);
        under_way_ = false;
        next_ = at;
        if (!IsExpectedOfPush(status, /*history_was_lost=*/true)) {
          run_.violations.Add(kSnapshot, absl::StrCat("flush: ", status.ToString()));
        }
        if (!status.ok() && !absl::IsDataLoss(status)) return;
        run_.progress.finished.insert(group);
        done_ = true;
      },
      outbox);
}

}  // namespace covey::sim
