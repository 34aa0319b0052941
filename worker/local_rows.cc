// SPDX-License-Identifier: Apache-2.0
#include "worker/local_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/operation.h"
#include "client/handle.h"
#include "client/table.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/table/definition.h"
#include "proto/table.pb.h"
#include "worker/engine/worker_core.h"
#include "worker/update/round_rows.h"

namespace covey::worker {
namespace {

// Copies each distinct key's row of `of_keys` to its places in the batch.
void Spread(const KeyBatch& batch, size_t width, std::span<const float> of_keys,
            std::span<float> rows) {
  for (size_t shard = 0; shard < batch.shards(); ++shard) {
    batch.SpreadRows(
        shard, width,
        of_keys.subspan(batch.KeysBefore(shard) * width, batch.KeysOf(shard).size() * width), rows);
  }
}

// A round that has ended, until the servers have its push.
struct RoundPush {
  covey::Step round;
  std::shared_ptr<KeyBatch> batch;
  Buffer change;
  uint64_t samples = 0;
  client::Handle handle{client::OperationResult{}};
};

// Of rows that the round does not have. Its operation keeps it, too: nobody may wait for its end.
struct RoundRead {
  std::vector<uint64_t> keys;  // distinct, in the batch's order
  std::shared_ptr<const KeyBatch> batch;
  std::vector<float> rows;
  client::Handle handle{client::OperationResult{}};
};

// The group, where this worker is alone in it.
absl::StatusOr<client::GroupIdentity> GroupOf(WorkerActor& actor) {
  const Communicator& group = actor.group();
  if (!group.formed()) {
    return absl::UnavailableError("this worker is in no group; see `covey status`");
  }
  if (group.size() == 1) {
    return client::GroupIdentity{.group = group.id(), .generation = group.generation()};
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "group ", group.id().value(), " has ", group.size(),
      " workers, and rounds of rows are those of one; start as many groups as workers"));
}

}  // namespace

class LocalRows::State {
 public:
  State(WorkerCore& core, client::Table table, uint64_t local_steps, RoundRows rows)
      : core_(core),
        table_(std::move(table)),
        local_steps_(local_steps),
        rows_(std::move(rows)),
        in_round_(table_.shard_ends.size()) {}
  ~State() {
    if (push_) push_->handle.Wait().IgnoreError();
  }

  absl::Status FindGroup();
  absl::Status Pull(std::span<const uint64_t> keys, std::span<float> rows, absl::Duration wait);
  absl::Status Step(std::span<const float> gradients, uint64_t samples, absl::Duration wait);
  absl::Status Finish(absl::Duration wait);
  bool in_flight() const { return read_ != nullptr || (push_ && !push_failed_); }

  absl::StatusOr<client::Counters> GetCounters() const {
    client::Counters counters;
    COVEY_RETURN_IF_ERROR(core_.Run([&counters](WorkerActor& actor, absl::Time, Outbox&) {
      counters = actor.client().engine().counters();
    }));
    return counters;
  }
  size_t width() const { return table_.width; }
  // Of the next step.
  uint64_t round() const { return steps_ / local_steps_ + 1; }

 private:
  std::shared_ptr<KeyBatch> BatchOf(std::span<const uint64_t> keys) const {
    auto batch = std::make_shared<KeyBatch>();
    batch->Assign(keys, table_.shard_ends);
    return batch;
  }
  // The rows of these keys that the round does not have yet.
  absl::Status ReadMissing(std::span<const uint64_t> keys, absl::Duration wait);
  // Waits for the read in flight, whose rows belong to the round.
  absl::Status AwaitRead(absl::Duration wait);
  // INVALID_ARGUMENT: the round's push could not carry these rows, too.
  absl::Status CheckPush(const KeyBatch& missing) const;
  // Ends the round of the last step.
  void EndRound();
  void StartPush();
  // Waits for the push in flight; the next call sends it again if it has failed.
  absl::Status AwaitPush(absl::Duration wait);
  // Starts the operation as the group's; it keeps `memory`.
  client::Handle Start(client::Operation operation, covey::Step round,
                       std::shared_ptr<const void> memory = nullptr);

  // Constant after construction.
  WorkerCore& core_;
  const client::Table table_;
  const uint64_t local_steps_;

  RoundRows rows_;
  std::vector<size_t> in_round_;  // rows, by shard
  GroupId group_;
  uint64_t steps_ = 0;      // that the group has taken
  covey::Step last_round_;  // that was pushed
  bool push_failed_ = false;
  std::optional<RoundPush> push_;
  std::shared_ptr<RoundRead> read_;  // null: none is in flight
  // Of the last Pull.
  std::shared_ptr<KeyBatch> batch_;
  std::vector<float> of_keys_;  // rows of its keys, or sums of them
};

absl::Status LocalRows::State::FindGroup() {
  return core_.RunWhenReady([this](WorkerActor& actor) {
    COVEY_ASSIGN_OR_RETURN(const client::GroupIdentity identity, GroupOf(actor));
    group_ = identity.group;
    const proto::Group* group = actor.client().member().view()->FindGroup(group_);
    // A group that comes late counts from the step of the others.
    if (group != nullptr && group->first_step() > 1) steps_ = group->first_step() - 1;
    last_round_ = covey::Step(steps_ / local_steps_);
    return absl::OkStatus();
  });
}

client::Handle LocalRows::State::Start(client::Operation operation, covey::Step round,
                                       std::shared_ptr<const void> memory) {
  core_.SetBack().IgnoreError();  // Else the next operation says it.
  operation.table = table_.id;
  client::Handle handle(core_.runner());
  operation.done = [handle, memory = std::move(memory)](absl::Time,
                                                        const client::OperationResult& result,
                                                        Outbox&) { handle.Complete(result); };
  const absl::Status posted = core_.PostBeforeWaiting(
      [this, handle, round, patience = core_.config().cluster.operation_deadline,
       operation = std::move(operation)](WorkerActor& actor, absl::Time now,
                                         Outbox& outbox) mutable {
        absl::StatusOr<client::GroupIdentity> identity = GroupOf(actor);
        if (identity.ok() && identity->group != group_) {
          identity = absl::FailedPreconditionError(
              absl::StrCat("this worker was in group ", group_.value(), " and is in group ",
                           identity->group.value(), " now; restart its program"));
        }
        if (!identity.ok()) return handle.Complete({.status = identity.status()});
        operation.group = *identity;
        operation.group->step = round;
        operation.read = {.step = round, .group = group_};
        operation.deadline = now + patience;
        const absl::Status started =
            actor.client().engine().Start(now, std::move(operation), outbox);
        if (!started.ok()) handle.Complete({.status = started});
      });
  if (!posted.ok()) handle.Complete({.status = posted});
  return handle;
}

absl::Status LocalRows::State::Pull(std::span<const uint64_t> keys, std::span<float> rows,
                                    absl::Duration wait) {
  if (rows.size() != keys.size() * width() || keys.size() >= std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table_.name, "': pull of ", keys.size(), " keys into ", rows.size(),
                     " elements; pass ", width(), " for each of fewer than 2^32 keys"));
  }
  std::shared_ptr<KeyBatch> batch = BatchOf(keys);
  COVEY_RETURN_IF_ERROR(ReadMissing(batch->keys(), wait));
  batch_ = std::move(batch);
  of_keys_.clear();
  for (const uint64_t key : batch_->keys()) {
    const std::span<const float> row = rows_.Find(key);
    of_keys_.insert(of_keys_.end(), row.begin(), row.end());
  }
  Spread(*batch_, width(), of_keys_, rows);
  return absl::OkStatus();
}

absl::Status LocalRows::State::ReadMissing(std::span<const uint64_t> keys, absl::Duration wait) {
  // Perhaps of a call whose wait has ended.
  COVEY_RETURN_IF_ERROR(AwaitRead(wait));
  std::vector<uint64_t> missing;
  rows_.FindMissing(keys, missing);
  if (missing.empty()) return absl::OkStatus();
  COVEY_RETURN_IF_ERROR(rows_.CheckRoom(missing.size()));
  std::shared_ptr<const KeyBatch> batch = BatchOf(missing);
  COVEY_RETURN_IF_ERROR(CheckPush(*batch));
  COVEY_RETURN_IF_ERROR(AwaitPush(wait));
  read_ = std::make_shared<RoundRead>();
  read_->rows.resize(missing.size() * width());
  read_->keys = std::move(missing);
  read_->batch = std::move(batch);
  read_->handle = Start({.keyed = client::KeyedOperation{.batch = read_->batch, .pulls = true},
                         .values = read_->rows},
                        last_round_, read_);
  return AwaitRead(wait);
}

absl::Status LocalRows::State::AwaitRead(absl::Duration wait) {
  if (read_ == nullptr) return absl::OkStatus();
  absl::Status waited = read_->handle.WaitFor(wait);
  if (!read_->handle.done()) return waited;
  const std::shared_ptr<const RoundRead> read = std::exchange(read_, nullptr);
  COVEY_RETURN_IF_ERROR(read->handle.Wait());
  rows_.Begin(read->keys, read->rows);
  for (size_t shard = 0; shard < read->batch->shards(); ++shard) {
    in_round_[shard] += read->batch->KeysOf(shard).size();
  }
  return absl::OkStatus();
}

absl::Status LocalRows::State::CheckPush(const KeyBatch& missing) const {
  const size_t rows_max = std::min(kKeysPerRequestMax, kFrameBytesMax / (width() * sizeof(float)));
  for (size_t shard = 0; shard < missing.shards(); ++shard) {
    const size_t rows = in_round_[shard] + missing.KeysOf(shard).size();
    if (rows <= rows_max) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table_.name, "': the round would have ", rows, " rows of shard ", shard,
        ", and a push carries ", rows_max, " of width ", width(), "; make rounds shorter"));
  }
  return absl::OkStatus();
}

absl::Status LocalRows::State::Step(std::span<const float> gradients, uint64_t samples,
                                    absl::Duration wait) {
  const size_t keys = batch_ == nullptr ? 0 : batch_->size();
  if (gradients.size() != keys * width()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table_.name, "': step with ", gradients.size(), " elements after a pull of ",
        keys, " keys; pass ", width(), " for each, and pull the rows of a step first"));
  }
  // Before a round ends, the one before it has arrived, and so has what is read for this one.
  if ((steps_ + 1) % local_steps_ == 0) {
    COVEY_RETURN_IF_ERROR(AwaitRead(wait));
    COVEY_RETURN_IF_ERROR(AwaitPush(wait));
  }
  if (samples > 0) {
    const std::span<const uint64_t> distinct =
        batch_ == nullptr ? std::span<const uint64_t>() : batch_->keys();
    of_keys_.resize(distinct.size() * width());
    if (batch_ != nullptr) batch_->SumAllRows(width(), gradients, of_keys_);
    COVEY_RETURN_IF_ERROR(rows_.Step(distinct, of_keys_, samples));
  }
  batch_ = nullptr;
  ++steps_;
  if (steps_ % local_steps_ == 0) EndRound();
  return absl::OkStatus();
}

void LocalRows::State::EndRound() {
  RoundPush& push = push_.emplace();
  last_round_ = covey::Step((steps_ + local_steps_ - 1) / local_steps_);
  push.round = last_round_;
  push.batch = BatchOf(rows_.Touched());
  push.samples = rows_.samples();
  push.change = Buffer::Allocate(push.batch->distinct() * width() * sizeof(float));
  const std::span<float> change = push.change.MutableAs<float>();
  size_t at = 0;
  for (const uint64_t key : push.batch->keys()) {
    rows_.ChangeOf(key, change.subspan(at, width()));
    at += width();
  }
  rows_.NextRound();
  std::ranges::fill(in_round_, 0);
  StartPush();
}

void LocalRows::State::StartPush() {
  push_failed_ = false;
  push_->handle = Start({.keyed = client::KeyedOperation{.batch = push_->batch, .pushes = true},
                         .gradient = push_->change.As<float>(),
                         .gradient_memory = push_->change,
                         .samples = push_->samples},
                        push_->round);
}

absl::Status LocalRows::State::AwaitPush(absl::Duration wait) {
  if (!push_) return absl::OkStatus();
  if (push_failed_) StartPush();
  absl::Status waited = push_->handle.WaitFor(wait);
  if (!push_->handle.done()) return waited;
  absl::Status status = push_->handle.Wait();
  push_failed_ = !status.ok();
  if (status.ok()) push_.reset();
  return status;
}

absl::Status LocalRows::State::Finish(absl::Duration wait) {
  COVEY_RETURN_IF_ERROR(AwaitPush(wait));
  if (steps_ % local_steps_ == 0) return absl::OkStatus();
  COVEY_RETURN_IF_ERROR(AwaitRead(wait));
  EndRound();
  steps_ = last_round_.value() * local_steps_;
  return AwaitPush(wait);
}

absl::StatusOr<std::unique_ptr<LocalRows>> LocalRows::Open(Worker& worker,
                                                           const proto::TableSpec& spec,
                                                           const Options& options) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::Parse(spec));
  if (!definition.sparse || definition.contract.kind != Contract::Kind::kLocal) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", definition.name, "' is ", definition.sparse ? "sparse" : "dense", " and under ",
        ContractName(definition.contract), "; rounds of rows need a sparse table under local:H. ",
        "Push rows under other contracts as a client does, and train dense tables by steps"));
  }
  if (options.rows_max == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", definition.name, "': rows_max is 0; allow as many rows as a round touches"));
  }
  COVEY_ASSIGN_OR_RETURN(RoundRows rows,
                         RoundRows::Create({.optimizer = definition.inner->optimizer,
                                            .learning_rate = definition.inner->learning_rate,
                                            .width = definition.sparse->width,
                                            .rows_max = options.rows_max,
                                            .refuses_non_finite = definition.refuses_non_finite}));
  WorkerCore& core = worker.core();
  proto::Envelope request;
  *request.mutable_create_table_request()->mutable_spec() = spec;
  COVEY_ASSIGN_OR_RETURN(
      const proto::Envelope reply,
      core.connection().Request(request, core.config().cluster.operation_deadline));
  const proto::CreateTableReply& created = reply.create_table_reply();
  for (const proto::Table& table : created.view().tables()) {
    if (table.id() != created.table()) continue;
    auto state = std::make_unique<State>(core, client::TableOf(table),
                                         definition.contract.local_steps, std::move(rows));
    COVEY_RETURN_IF_ERROR(state->FindGroup());
    return std::unique_ptr<LocalRows>(new LocalRows(std::move(state)));
  }
  return absl::InternalError(absl::StrCat("the scheduler created table '", definition.name,
                                          "' but does not show it; report this as a bug"));
}

LocalRows::LocalRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
LocalRows::~LocalRows() = default;

absl::Status LocalRows::Pull(std::span<const uint64_t> keys, std::span<float> rows,
                             absl::Duration wait) {
  return state_->Pull(keys, rows, wait);
}
absl::Status LocalRows::Step(std::span<const float> gradients, uint64_t samples,
                             absl::Duration wait) {
  return state_->Step(gradients, samples, wait);
}
absl::Status LocalRows::Finish(absl::Duration wait) { return state_->Finish(wait); }
bool LocalRows::in_flight() const { return state_->in_flight(); }
absl::StatusOr<client::Counters> LocalRows::GetCounters() const { return state_->GetCounters(); }
size_t LocalRows::width() const { return state_->width(); }
uint64_t LocalRows::round() const { return state_->round(); }

}  // namespace covey::worker
