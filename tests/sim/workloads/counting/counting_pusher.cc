// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_pusher.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/counting/counting_functions.h"
#include "tests/sim/workloads/counting/counting_rows.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which the script checks whether the table exists.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kFlushPatience = absl::Seconds(20);
// The same without faults, though shards may move.
constexpr absl::Duration kQuietFlushPatience = absl::Seconds(2);
constexpr int kConcurrency = 4;

// The memory of one operation, which lives until the operation has ended.
struct Memory {
  std::vector<float> gradient;
  std::vector<float> values;
  std::shared_ptr<const KeyBatch> batch;  // of a sparse table
};

}  // namespace

CountingPusher::CountingPusher(const Options& options, Random random)
    : run_(options),
      random_(random),
      table_(options.plan.Spec()),
      watch_(kCounting, options.violations) {}

void CountingPusher::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  watch_.Check(now);
  const proto::Table* table = table_.Advance(now, client, outbox);
  if (!table_.refusal().ok()) run_.violations.Add(kCounting, table_.refusal().ToString());
  if (table == nullptr) {
    next_ = now + kLookAgain;
    return;
  }
  while (now >= next_ && under_way_ < kConcurrency && !run_.slots.exhausted()) {
    next_ = now + run_.think_max * random_.Uniform();
    StartOne(now, *table, client, outbox);
  }
  if (run_.slots.exhausted() && under_way_ == 0 && !flushed_) Flush(now, client, outbox);
}

absl::Time CountingPusher::NextWake() const {
  const absl::Time next =
      under_way_ < kConcurrency && !run_.slots.exhausted() ? next_ : absl::InfiniteFuture();
  return std::min(watch_.NextWake(), next);
}

void CountingPusher::StartOne(absl::Time now, const proto::Table& table_now,
                              client::ClientActor& client, Outbox& outbox) {
  const TableId table(table_now.id());
  const bool sparse = run_.plan.sparse;
  const uint32_t shards = static_cast<uint32_t>(table_now.shards_size());
  const bool all = sparse || random_.Chance(0.3);
  const uint32_t first = all ? 0 : static_cast<uint32_t>(random_.Below(shards));
  const uint32_t count =
      all ? shards : 1 + static_cast<uint32_t>(random_.Below(std::min(2u, shards - first)));
  const bool push = random_.Chance(0.75);
  const bool functions = run_.plan.functions;
  const bool pull = !push || (!functions && random_.Chance(0.3));
  auto memory = std::make_shared<Memory>();
  const uint64_t slot = push ? run_.slots.TakeForPush() : 0;
  const size_t width = run_.plan.slots();
  if (sparse) {
    memory->batch = push ? BatchOfPush(table_now, slot) : BatchOf(table_now, HomeKeys(table_now));
    if (push)
      memory->gradient = RowsOfPush(table_now, *memory->batch, width, slot, run_.plan.arrivals);
    if (pull) memory->values.resize(memory->batch->size() * width);
  } else if (!functions) {
    if (push) memory->gradient = run_.plan.Gradient(slot, count);
    if (pull) memory->values.resize(count * width);
  }
  const absl::Time deadline = now + run_.patience_min + run_.plan.deadline_max * random_.Uniform();
  const uint64_t watched = watch_.Begin(deadline);
  client::Operation operation{
      .table = table,
      .first_shard = ShardIndex(first),
      .shard_count = count,
      .keyed = sparse ? std::optional(client::KeyedOperation{
                            .batch = memory->batch, .pushes = push, .pulls = pull})
                      : std::nullopt,
      .gradient = memory->gradient,
      .values = memory->values,
      .functions = functions && push ? FunctionsOfPush(slot) : std::vector<VectorFunction>(),
      .queries = functions && pull ? QueriesOf(width) : std::vector<VectorQuery>(),
      .deadline = deadline,
      .done = [this, watched, memory, push, slot, table, first, count](
                  absl::Time, const client::OperationResult& ended, Outbox&) {
        const client::OperationResult result = WithoutRefusal(ended);
        --under_way_;
        watch_.End(watched);
        if (push && result.status.ok()) acknowledged_.push_back(slot);
        if (push) {
          run_.outcomes.PushEnded(result,
                                  {.slot = slot, .table = table, .first = first, .count = count});
        } else if (!result.status.ok()) {
          run_.outcomes.Failed(result.status);
        }
      }};
  ++under_way_;
  const absl::Status status = client.engine().Start(now, std::move(operation), outbox);
  if (status.ok()) return;
  --under_way_;
  watch_.End(watched);
  run_.violations.Add(kCounting, absl::StrCat("refused at once: ", status.ToString()));
}

// A program ends only after all that it pushed is durable. The others need not push for that.
void CountingPusher::Flush(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  ++under_way_;
  const absl::Time deadline = now + (run_.quiet ? kQuietFlushPatience : kFlushPatience);
  const uint64_t watched = watch_.Begin(deadline);
  client.engine().Flush(
      now, client::RequestEngine::FlushScope::kAll, deadline,
      [this, watched](absl::Time at, const absl::Status& status, Outbox&) {
        --under_way_;
        watch_.End(watched);
        Flushed(at, status);
      },
      outbox);
}

void CountingPusher::Flushed(absl::Time now, const absl::Status& status) {
  if (status.ok()) {
    for (const uint64_t slot : acknowledged_) run_.ledger.Flushed(slot);
  }
  // The content of some shard was lost, or this client was declared dead, and pushes were lost
  // with it. It is unknown which ones.
  flushed_ = status.ok() || absl::IsDataLoss(status) || absl::IsAborted(status);
  next_ = now;
  if (!IsExpectedOfPush(status, run_.ledger.HistoryWasLost()) || (run_.quiet && !status.ok())) {
    run_.violations.Add(kCounting, absl::StrCat("flush: ", status.ToString()));
  }
}

}  // namespace covey::sim
