// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "proto/view.pb.h"
#include "scheduler/placement/chain_editor.h"
#include "scheduler/placement/chains_options.h"
#include "scheduler/placement/server_loads.h"

namespace covey::scheduler {

// Shards whose content no server has any more, and when and where they are re-initialized:
//
//   the last full member departed   on a server of the same rank, or, after `replacement_wait`, on
//                                   others; in any case after the lease of the departed server
//   the only full member is unfit   at once, on others if there are any
//
// Actor-confined, deterministic. After a restart of the scheduler, Fence is called again for
// departed servers, and a server repeats its report of a corrupt shard until the shard is
// re-initialized.
class LostShards {
 public:
  explicit LostShards(const ChainsOptions& options) : options_(options) {}

  // From the next round on.
  void SetOptions(const ChainsOptions& options) { options_ = options; }

  // The lease of a departed server: until then it may serve the shards that it alone holds.
  void Fence(NodeId server, absl::Time until) { fenced_until_[server] = until; }

  // The only full replica of the shard is unfit, in this generation.
  void MarkCorrupt(ShardId shard, NodeId node, uint64_t generation) {
    corrupt_[shard] = {.node = node, .generation = generation};
  }
  // Another replica has become full, so the content is not lost. Returns the unfit node, which must
  // leave the chain; 0 = none.
  NodeId ClearCorrupt(ShardId shard, uint64_t generation);
  bool IsCorrupt(ShardId id, const proto::Shard& shard) const;

  // Called around the calls of Reinitialize in one reconciliation.
  void BeginRound();
  void EndRound(absl::Time now);
  // Gives a lost or corrupt shard a new generation on `target` servers, unless it has to wait
  // longer. Under OnLoss::kRestore it begins with its part of `snapshot`, unless that has no
  // folder; else with the table's first values. Where a node has given these, nobody can make them
  // again, and the job stops. While the table waits for them nothing is lost: they are given again.
  // False: the shard has to wait, or the job is to stop instead.
  bool Reinitialize(absl::Time now, const proto::Table& table, const proto::Shard& shard,
                    uint32_t target, const proto::NewestSnapshot& snapshot, ChainEditor& editor);
  // Why the job is to stop: a shard is lost for good, under OnLoss::kStop or because its values
  // were given; for users. Empty = it is not.
  const std::string& why_stop() const { return why_stop_; }
  // When the next shard is due; as of the last round.
  absl::Time NextRound() const { return next_round_; }

 private:
  struct CorruptShard {
    NodeId node;
    uint64_t generation = 0;
  };

  // Why the shard cannot begin again; empty = it can.
  std::string WhyStop(const proto::Table& table, bool restores) const;
  // The server that takes over from a departed one; null = its shards have to wait.
  ServerLoads::Server* ReplacementFor(absl::Time now, NodeId departed, ChainEditor& editor);

  ChainsOptions options_;
  absl::Time next_round_ = absl::InfiniteFuture();
  // Since when shards wait for a server with the rank of this departed one.
  std::map<NodeId, absl::Time> lost_since_;
  std::set<NodeId> waited_for_;  // in this round
  std::map<NodeId, absl::Time> fenced_until_;
  std::map<ShardId, CorruptShard> corrupt_;
  std::string why_stop_;
};

}  // namespace covey::scheduler
