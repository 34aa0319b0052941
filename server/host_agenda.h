// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"
#include "server/replication/load_source.h"
#include "server/shard_host.h"

namespace covey::server {

// The work that the hosts of one loop have left to it: reports for the scheduler, the next
// deadline, and the shards to be opened when the loop is idle.
//
// Actor-confined. Deterministic.
class HostAgenda {
 public:
  // To be called before all hosts are called: forgets everything kept earlier, except reports.
  void BeginRound();
  // To be called after one call of a host.
  void Keep(ShardId id, ShardHost::Settled settled);
  // To be called after the last call of a removed host: only its reports count.
  void KeepReports(ShardHost::Settled settled);

  // What concerns snapshots, since the last call.
  struct ForSnapshots {
    struct Cut {
      ShardId shard;
      Replica::TakenCut cut;
    };
    std::vector<Cut> cuts;
    // Why a shard makes no cut; and from where in the store a shard is to be loaded.
    std::vector<std::pair<ShardId, std::string>> failures;
    std::vector<std::pair<ShardId, LoadSource>> loads;
  };
  bool has_for_snapshots() const {
    return !for_snapshots_.cuts.empty() || !for_snapshots_.failures.empty() ||
           !for_snapshots_.loads.empty();
  }
  ForSnapshots TakeForSnapshots() { return std::exchange(for_snapshots_, {}); }

  // Sends one message with all reports to the control loop, if there are any.
  void SendReports(const Address& control_loop, Outbox& outbox);
  // The earliest deadline of any host.
  absl::Time next_deadline() const { return next_deadline_; }
  // The first shard to be opened.
  std::optional<ShardId> next_to_open() const;

 private:
  absl::Time next_deadline_ = absl::InfiniteFuture();
  absl::btree_set<ShardId> unopened_;
  std::vector<proto::ReplicaReport> reports_;  // not sent yet
  ForSnapshots for_snapshots_;                 // not taken yet
};

}  // namespace covey::server
