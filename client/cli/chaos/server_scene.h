// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/chaos/chaos_cluster.h"
#include "client/cli/chaos/experiment_context.h"
#include "client/cli/chaos/ledger_load.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// A scheduler, servers, and pushes to all of them: where the experiments with servers take place.
//
// Confined to one thread; calls block while pushes continue. The destructor kills the processes.
class ServerScene {
 public:
  // The time until the rates are steady; and how long an experiment measures them before the fault.
  static constexpr absl::Duration kWarmUp = absl::Seconds(2);
  static constexpr absl::Duration kBefore = absl::Seconds(5);

  struct Options {
    uint32_t servers = 1;
    size_t lanes = 1;  // tables, each on two servers
    // The server that can be cut off, see ChaosCluster::Start. Empty = none.
    std::string detoured = {};
  };
  // Errors: those of ChaosCluster::Start and LedgerLoad::Start.
  static absl::StatusOr<ServerScene> Make(const ExperimentContext& context, const Options& options);

  ChaosCluster& cluster() { return *cluster_; }
  LedgerLoad& load() { return *load_; }

  // Each of these returns CANCELLED when this process was asked to end.
  absl::Status Run(absl::Duration time);
  // Runs until `done`, or `until`.
  absl::Status RunUntil(absl::Time until, absl::FunctionRef<bool()> done);
  // Runs until the scheduler's view satisfies `is_so`, which is polled, or until `until`. `seen` is
  // set to the time when it did. `is_so` gets the time at which the view was requested.
  absl::Status WatchFor(absl::Time until, std::optional<absl::Time>& seen,
                        absl::FunctionRef<bool(const proto::ClusterView&, absl::Time)> is_so);

 private:
  ServerScene(std::unique_ptr<ChaosCluster> cluster, std::unique_ptr<LedgerLoad> load)
      : cluster_(std::move(cluster)), load_(std::move(load)) {}

  std::unique_ptr<ChaosCluster> cluster_;
  std::unique_ptr<LedgerLoad> load_;
};

}  // namespace covey::cli
