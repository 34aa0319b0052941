// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "client/engine/requests/key_batch.h"
#include "common/cluster/view.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/workloads/counting/counting_plan.h"
#include "tests/sim/workloads/counting/counting_slots.h"

namespace covey::sim {

// The last content of a table, as a user read it. A value.
struct CountingAudit {
  // Null: the table was not read yet.
  std::shared_ptr<const ClusterView> view;
  std::vector<float> values;
  // Of a sparse table: whose rows `values` holds, and the same keys by shard.
  std::vector<uint64_t> keys;
  std::shared_ptr<const KeyBatch> batch;

  bool done() const { return view != nullptr; }
};

// The program that reads the table at the very end. It waits until the faults have ended and all
// other programs are done, pushes as many fillers as it takes to empty the servers' buffers, and
// pulls everything.
//
// Actor-confined. Everything that the options refer to outlives it.
class CountingAuditor : public Script {
 public:
  struct Options {
    const CountingPlan& plan;
    CountingSlots& slots;
    const SimCluster& cluster;
    Violations& violations;
    // Receives the result.
    CountingAudit& audit;
  };
  explicit CountingAuditor(const Options& options);

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override { return under_way_ ? absl::InfiniteFuture() : next_; }
  bool done() const override { return run_.audit.done(); }

 private:
  bool OthersAreGone(client::ClientActor& client) const;
  void StartOne(absl::Time now, const proto::Table& table, client::ClientActor& client,
                Outbox& outbox);
  // Of a table of vectors: the slots of the next shard.
  void AskOne(absl::Time now, const proto::Table& table, client::ClientActor& client,
              Outbox& outbox);
  void Ended(bool push, const absl::Status& status, client::ClientActor& client);

  const Options run_;
  TableCreation table_;
  absl::Time next_ = absl::InfinitePast();
  absl::Time quiet_since_ = absl::InfiniteFuture();
  bool under_way_ = false;
  uint64_t fillers_ = 0;
  std::vector<float> gradient_;
  std::vector<float> values_;
  std::vector<uint64_t> keys_;  // of a pull of a sparse table
  std::shared_ptr<const KeyBatch> batch_;
};

}  // namespace covey::sim
