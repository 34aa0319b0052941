// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "client/engine/operation.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/counting/counting_ledger.h"

namespace covey::sim {

// A push is applied although a full table has refused some of its rows: that is no failure here.
client::OperationResult WithoutRefusal(client::OperationResult result);

// The outcomes of operations that the clients of the workload "counting" were told.
//
// Invariants:
//  - a client is told that its push succeeded, or is durable, only after a server said so of every
//    shard;
//  - an error is one that faults explain.
//
// Actor-confined; ledger and violations outlive it.
class CountingOutcomes {
 public:
  CountingOutcomes(const CountingLedger& ledger, Violations& violations)
      : ledger_(ledger), violations_(violations) {}

  // From now on an error is a violation: there are no faults.
  void ExpectSuccess() { must_succeed_ = true; }

  // A push to the shards [first, first + count) ended, possibly with an error.
  struct Push {
    uint64_t slot = 0;
    TableId table;
    uint32_t first = 0;
    uint32_t count = 0;
  };
  void PushEnded(const client::OperationResult& result, const Push& push);
  // An operation ended with an error.
  void Failed(const absl::Status& status);

  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t failed() const { return failed_; }

 private:
  const CountingLedger& ledger_;
  Violations& violations_;
  bool must_succeed_ = false;
  uint64_t acknowledged_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace covey::sim
