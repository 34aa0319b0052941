// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/staleness/staleness_plan.h"
#include "tests/sim/workloads/staleness/staleness_progress.h"

namespace covey::sim {

// The program of an operator, who changes the table's contract while the groups train.
//
// Actor-confined. Everything that the options refer to outlives it.
class ContractSwitcher : public Script {
 public:
  struct Options {
    const StalenessPlan& plan;
    StalenessProgress& progress;
    Violations& violations;
    // The longest pause between two changes.
    absl::Duration pause_max;
  };
  ContractSwitcher(const Options& options, Random random) : run_(options), random_(random) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override { return under_way_ ? absl::InfiniteFuture() : next_; }
  bool done() const override { return next_switch_ == run_.plan.switches.size(); }

 private:
  void Switch(absl::Time now, client::ClientActor& client, Outbox& outbox);
  void Ended(const absl::Status& status);

  const Options run_;
  Random random_;
  size_t next_switch_ = 0;
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
};

}  // namespace covey::sim
