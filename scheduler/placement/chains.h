// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/placement/chain_editor.h"
#include "scheduler/placement/chain_moves.h"
#include "scheduler/placement/chains_options.h"
#include "scheduler/placement/lost_shards.h"
#include "scheduler/placement/server_loads.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Which servers hold each shard, in which order. Every change of placement is an edit of a chain:
//
//   a server departs   its replicas are out at once; the next full one is head. Without a full one
//                      the content is lost (lost_shards.h)
//   a chain is short   a replica joins at its end; full when its predecessor reports READY
//   a server drains,   a replica joins; once it is full, the one that is to leave is out
//   or loads differ    (chain_moves.h)
//   UNREACHABLE, UNFIT that replica is out. The last full one is never out for being unreachable;
//                      when it is unfit, the content is lost
//
// Plans follow from the view alone, so a restarted scheduler continues what was in progress.
//
// Invariants:
//  1. A full replica leaves a live server's chain only when as many full ones as the table's target
//     are left, or when it is reported. The target is the table's replicas, at most the number of
//     servers that do not drain, at least 1.
//  2. Members keep their order, for a predecessor knows everything that its successors know, and
//     not the other way round. A replica that joins comes last; one at a time in each chain.
//  3. Each edit gives the chain an epoch that no node has seen (Transaction::EditChain).
//  4. Repair comes before balance. Each move of balance lessens one measure of imbalance
//     (chain_balance.h), so balance ends.
//
// What servers guarantee: a server that reports READY waits for the replica's acknowledgements, as
// for those of a full member, from before the report until it knows a newer chain. So no
// acknowledged update would be missing if the replica became head, even if the reporter learns of
// the change later than others.
//
// Actor-confined, deterministic. `state` outlives it.
class Chains {
 public:
  Chains(const ChainsOptions& options, ClusterState& state) : state_(state), lost_(options) {}

  // Shards that wait are judged by these at the next reconciliation, which is due at once.
  void SetOptions(const ChainsOptions& options) {
    lost_.SetOptions(options);
    is_due_ = true;
  }

  // The lease of a departed server: until then it may serve the shards that it alone holds.
  void Fence(NodeId server, absl::Time until) { lost_.Fence(server, until); }

  // Handles a server's reports about replicas. A report is ignored when it is about another
  // generation or another chain of the shard, or when its sender is neither the replica nor ahead
  // of it in the chain.
  void OnReports(absl::Time now, NodeId sender, const proto::ReplicaReportRequest& request);

  // Makes the edits that are due, in one transaction. O(shards), so the caller collects reports
  // before.
  void Reconcile(absl::Time now);
  // A shard is lost for good, and the job is to stop then; why, for users.
  bool must_stop() const { return !lost_.why_stop().empty(); }
  const std::string& why_stop() const { return lost_.why_stop(); }
  // Whether no server has the content of one of the table's shards any more, and none has begun it
  // again.
  bool HasLostShard(const proto::Table& table) const;
  // When Reconcile has to be called even without a new report or commit.
  absl::Time NextReconcile() const;

 private:
  // A chain that needs a replica.
  struct UnderReplicated {
    const proto::Shard* shard;
    ShardId id;
    int full;
  };

  // True: the report has changed the chain.
  bool OnReport(absl::Time now, NodeId sender, const proto::ReplicaReport& report,
                ChainEditor& editor);
  void Avoid(NodeId server, absl::Time until);
  // Marks servers that get no new replicas now.
  void MarkAvoided(ServerLoads& loads, absl::Time now);
  // Removes members that have departed or must leave, and members beyond the target.
  void TakeOut(ChainEditor& editor);
  // Re-initializes lost shards and fills short chains. True: there is no shard of either kind.
  bool Repair(absl::Time now, ChainEditor& editor);
  void Fill(const proto::Shard& shard, ChainEditor& editor);
  // The newest snapshot, if it has the table; otherwise one without a folder.
  const proto::NewestSnapshot& SnapshotWith(const proto::Table& table) const;

  ClusterState& state_;
  LostShards lost_;
  ChainMoves moves_;
  // Nodes and tables as of the last Reconcile.
  uint64_t placement_version_ = 0;
  bool is_due_ = true;
  absl::Time next_ = absl::InfiniteFuture();
  // Reported servers: they get no new replicas before this time.
  std::map<NodeId, absl::Time> avoided_until_;
  // Changes by reports since the last Reconcile, which records them as an event.
  ShardsReconciled reported_;
};

}  // namespace covey::scheduler
