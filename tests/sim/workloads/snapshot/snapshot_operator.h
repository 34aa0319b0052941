// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "proto/envelope.pb.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"

namespace covey::sim {

// The program of an operator who asks for a snapshot from time to time, or restores a trained table
// of the newest one under a name of its own.
//
// Actor-confined. `violations` outlives it.
class SnapshotOperator : public Script {
 public:
  struct Restore {
    std::string table;
    std::string new_name;
  };
  // `restores`: empty = no table is ever restored.
  SnapshotOperator(absl::Duration pause_max, std::vector<Restore> restores, Random random,
                   Violations& violations)
      : pause_max_(pause_max),
        restores_(std::move(restores)),
        random_(random),
        violations_(violations) {}

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override { return under_way_ ? absl::InfiniteFuture() : next_; }
  bool done() const override { return false; }

 private:
  // The next request.
  proto::Envelope Draw();

  const absl::Duration pause_max_;
  const std::vector<Restore> restores_;
  Random random_;
  Violations& violations_;
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
};

}  // namespace covey::sim
