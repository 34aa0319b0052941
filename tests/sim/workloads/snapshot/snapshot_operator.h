// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"

namespace covey::sim {

// The program of an operator who asks for a snapshot from time to time.
//
// Actor-confined. `violations` outlives it.
class SnapshotOperator : public Script {
 public:
  SnapshotOperator(absl::Duration pause_max, Random random, Violations& violations)
      : pause_max_(pause_max), random_(random), violations_(violations) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override { return under_way_ ? absl::InfiniteFuture() : next_; }
  bool done() const override { return false; }

 private:
  const absl::Duration pause_max_;
  Random random_;
  Violations& violations_;
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
};

}  // namespace covey::sim
