// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_outcomes.h"

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

client::OperationResult WithoutRefusal(client::OperationResult result) {
  if (result.rows_refused > 0 && absl::IsFailedPrecondition(result.status)) {
    result.status = absl::OkStatus();
  }
  return result;
}

void CountingOutcomes::PushEnded(const client::OperationResult& result, const Push& push) {
  if (absl::IsDataLoss(result.status) &&
      IsExpectedOfPush(result.status, ledger_.HistoryWasLost())) {
    ++failed_;
    return;
  }
  if (!result.status.ok()) return Failed(result.status);
  ++acknowledged_;
  for (uint32_t i = push.first; i < push.first + push.count; ++i) {
    if (ledger_.WasAcknowledged({push.table, ShardIndex(i)}, push.slot, result.durable)) continue;
    violations_.Add(kCounting,
                    absl::StrCat("the client was told that slot ", push.slot, " is in shard ", i,
                                 result.durable ? " for good" : "", ", but no server had said so"));
  }
}

void CountingOutcomes::Failed(const absl::Status& status) {
  if (!IsExpectedOfOperation(status)) violations_.Add(kCounting, status.ToString());
  ++failed_;
  if (!must_succeed_) return;
  violations_.Add(kCounting,
                  absl::StrCat("failed although nothing went wrong: ", status.ToString()));
}

}  // namespace covey::sim
