// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/counting/counting_ledger.h"
#include "tests/sim/workloads/counting/counting_outcomes.h"
#include "tests/sim/workloads/counting/counting_plan.h"
#include "tests/sim/workloads/counting/counting_slots.h"
#include "tests/sim/workloads/deadline_watch.h"

namespace covey::sim {

// The program of one client: it pushes to random shards and whole tables, pulls at times, and ends
// once all that it pushed is durable. Ends with its process; the next one pushes what is left.
//
// Actor-confined. Everything that the options refer to outlives it.
class CountingPusher : public Script {
 public:
  struct Options {
    const CountingPlan& plan;
    CountingSlots& slots;
    CountingLedger& ledger;
    CountingOutcomes& outcomes;
    Violations& violations;
    // The longest pause between two operations.
    absl::Duration think_max;
    // The shortest time-out of an operation.
    absl::Duration patience_min;
    // There are no faults, so each flush must succeed.
    bool quiet = false;
  };
  CountingPusher(const Options& options, Random random);

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override;
  bool done() const override { return run_.slots.exhausted() && under_way_ == 0 && flushed_; }

 private:
  void StartOne(absl::Time now, const proto::Table& table_now, client::ClientActor& client,
                Outbox& outbox);
  void Flush(absl::Time now, client::ClientActor& client, Outbox& outbox);
  void Flushed(absl::Time now, const absl::Status& status);

  const Options run_;
  Random random_;
  TableCreation table_;
  DeadlineWatch watch_;
  std::vector<uint64_t> acknowledged_;  // slots
  bool flushed_ = false;
  absl::Time next_ = absl::InfinitePast();
  int under_way_ = 0;
};

}  // namespace covey::sim
