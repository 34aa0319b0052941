// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/base/random.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/workloads/initialize/one_origin.h"

namespace covey::sim {

// A program that creates the tables, may give them numbers as initial values, and then reads and
// pushes until it has done so `rounds` times. Each call that gives values has a number of its own,
// half of the calls an optimizer's state, too; sometimes there are two at a time. The program gives
// up when a shard is lost for good.
class InitializerScript : public Script {
 public:
  struct Options {
    std::vector<proto::TableSpec> tables;
    // Otherwise it only reads, and waits for others.
    bool gives = true;
    int rounds = 1;
    // Between two of its calls, at most.
    absl::Duration think_max;
    OneOrigin& origin;
    const SimCluster& cluster;
    Violations& violations;
  };
  InitializerScript(const Options& options, Random random);

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override { return under_way_ > 0 ? absl::InfiniteFuture() : next_; }
  bool done() const override { return done_; }

 private:
  // One call with a number of its own.
  void Initialize(absl::Time now, client::ClientActor& client, Outbox& outbox);
  // Reads one table, and pushes zeros or not.
  void Train(absl::Time now, TableId table, client::ClientActor& client, Outbox& outbox);
  void Ended(absl::Time now, const absl::Status& status);

  const Options run_;
  Random random_;
  std::vector<TableCreation> creations_;
  const std::vector<float> zeros_;
  std::vector<float> values_;
  absl::Time next_ = absl::InfinitePast();
  int under_way_ = 0;  // calls
  bool initialized_ = false;
  int rounds_ = 0;
  bool done_ = false;
};

// Elements of each table.
inline constexpr uint64_t kElements = 320;

}  // namespace covey::sim
