// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_auditor.h"

#include <algorithm>
#include <optional>
#include <span>

#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/workloads/counting/counting_functions.h"
#include "tests/sim/workloads/counting/counting_outcomes.h"
#include "tests/sim/workloads/counting/counting_rows.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// Interval at which the script checks its condition.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
// Longer than the slowest message: whatever a client sent before it crashed has arrived.
constexpr absl::Duration kLastMessage = absl::Seconds(10);
// Time within which the scheduler knows of each death.
constexpr absl::Duration kDeathsTake = absl::Seconds(60);

}  // namespace

CountingAuditor::CountingAuditor(const Options& options)
    : run_(options), table_(options.plan.Spec()) {}

void CountingAuditor::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  const proto::Table* table = table_.Advance(now, client, outbox);
  if (now < next_ || under_way_ || done()) return;
  next_ = now + kLookAgain;
  if (table == nullptr || !OthersAreGone(client)) return;
  quiet_since_ = std::min(quiet_since_, now);
  if (now - quiet_since_ < kLastMessage) return;
  StartOne(now, *table, client, outbox);
}

bool CountingAuditor::OthersAreGone(client::ClientActor& client) const {
  if (!run_.cluster.healed()) return false;
  for (const auto& process : run_.cluster.processes()) {
    if (process->name().rfind("client-", 0) == 0 && process->running()) return false;
  }
  // A server whose death has not been noticed yet would lose the values.
  return run_.cluster.simulator().now() - run_.cluster.healed_at() > kDeathsTake &&
         WhyNotWhole(client.member().view()->proto()).empty();
}

void CountingAuditor::StartOne(absl::Time now, const proto::Table& table,
                               client::ClientActor& client, Outbox& outbox) {
  const bool push = fillers_ + 1 < run_.plan.arrivals;
  const size_t width = run_.plan.slots();
  if (push && gradient_.empty()) {
    const uint64_t slot = run_.slots.TakeForAuditor();
    if (run_.plan.sparse) {
      batch_ = BatchOfPush(table, slot);
      gradient_ = RowsOfPush(table, *batch_, width, slot, run_.plan.arrivals);
    } else {
      gradient_ = run_.plan.Gradient(slot, run_.plan.shards);
    }
  }
  if (!push && run_.plan.sparse) {
    keys_ = HomeKeys(table);
    const std::vector<uint64_t> further = AllFurtherKeys();
    keys_.insert(keys_.end(), further.begin(), further.end());
    batch_ = BatchOf(table, keys_);
  }
  if (run_.plan.functions) return AskOne(now, table, client, outbox);
  values_.assign((run_.plan.sparse ? batch_->size() : run_.plan.shards) * width, -1);
  under_way_ = true;
  const absl::Status status = client.engine().Start(
      now,
      {.table = TableId(table.id()),
       .keyed = run_.plan.sparse ? std::optional(client::KeyedOperation{
                                       .batch = batch_, .pushes = push, .pulls = !push})
                                 : std::nullopt,
       .gradient = push ? std::span<const float>(gradient_) : std::span<const float>(),
       .values = push ? std::span<float>() : std::span<float>(values_),
       .deadline = now + absl::Seconds(60),
       .done =
           [this, &client, push](absl::Time, const client::OperationResult& result, Outbox&) {
             under_way_ = false;
             Ended(push, WithoutRefusal(result).status, client);
           }},
      outbox);
  if (!status.ok()) run_.violations.Add(kCounting, status.ToString());
}

void CountingAuditor::AskOne(absl::Time now, const proto::Table& table, client::ClientActor& client,
                             Outbox& outbox) {
  const size_t width = run_.plan.slots();
  const auto shard = static_cast<uint32_t>(values_.size() / width);
  under_way_ = true;
  const absl::Status status = client.engine().Start(
      now,
      {.table = TableId(table.id()),
       .first_shard = ShardIndex(shard),
       .shard_count = 1,
       .queries = QueriesOf(width),
       .deadline = now + absl::Seconds(60),
       .done =
           [this, &client, width](absl::Time, const client::OperationResult& result, Outbox&) {
             under_way_ = false;
             if (result.status.ok()) {
               const std::vector<float> slots = SlotsIn(result.answers, width);
               values_.insert(values_.end(), slots.begin(), slots.end());
               if (values_.size() < run_.plan.shards * width) return;
             }
             Ended(/*push=*/false, result.status, client);
           }},
      outbox);
  if (!status.ok()) run_.violations.Add(kCounting, status.ToString());
}

void CountingAuditor::Ended(bool push, const absl::Status& status, client::ClientActor& client) {
  gradient_.clear();
  if (!status.ok()) {
    // A server may have been declared dead just before the faults ended; then retry once.
    if (!IsExpectedOfOperation(status)) run_.violations.Add(kCounting, status.ToString());
    fillers_ = 0;
    return;
  }
  if (push) {
    ++fillers_;
    return;
  }
  run_.audit.view = client.member().view();
  run_.audit.values = values_;
  run_.audit.keys = keys_;
  run_.audit.batch = batch_;
}

}  // namespace covey::sim
