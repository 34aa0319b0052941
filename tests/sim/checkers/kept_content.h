// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a shard gets a new generation, and so loses its content, only when every server that
// held it has died, or could not read it from the snapshot that the job continues, or has left
// before it was drained. A server that was drained is not among them: it holds nothing. A
// joining replica counts as joined only when its head has reported it ready, or when it is the
// first of a new history.
class KeptContent : public Observer {
 public:
  explicit KeptContent(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

  // Shards that began a new generation, whether the invariant allowed it or not.
  uint64_t lost() const { return lost_; }

 private:
  struct Holders {
    uint64_t generation = 0;
    std::set<uint64_t> joined;
    std::set<uint64_t> joining;
  };

  void NoteReports(const Message& message);
  void CheckNodes(const proto::ClusterView& view);
  void CheckShard(uint64_t epoch, ShardId id, const proto::Shard& shard);

  Violations& violations_;
  uint64_t epoch_ = 0;
  // The previous view was that of the epoch before, so nothing has happened in between.
  bool saw_last_ = false;
  std::map<uint64_t, int> node_states_;
  std::set<uint64_t> undrained_;  // servers that have left before they were drained
  std::map<ShardId, Holders> holders_;
  // Replicas that were reported ready, and that could not read a restored shard; by history and
  // node.
  std::set<std::pair<ShardHistory, uint64_t>> ready_;
  std::set<std::pair<ShardHistory, uint64_t>> unfit_;
  uint64_t lost_ = 0;
};

}  // namespace covey::sim
