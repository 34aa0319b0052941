// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "proto/view.pb.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/replica_snapshot.h"

namespace covey::sim {

// Invariants:
//  - joined replicas that follow the same chain and hold the same record of a shard have the same
//    content, bit for bit, whenever each of them reached it;
//  - content that was durable once is what every joined replica of a later chain has at that
//    record;
//  - once the cluster is at rest, all joined replicas hold what the head holds.
class EqualReplicas {
 public:
  explicit EqualReplicas(Violations& violations) : violations_(violations) {}

  // Checks while the cluster works. `view` is the published one, `replicas` are of its chains.
  void Look(const proto::ClusterView& view, const std::vector<ReplicaSnapshot>& replicas);
  // Describes the first difference between a head and another joined replica; empty = none.
  static std::string WhyUnequal(const proto::ClusterView& view,
                                const std::vector<ReplicaSnapshot>& replicas);

 private:
  struct Seen {
    std::string server;
    uint64_t digest = 0;
  };

  void LookAt(const proto::Shard& shard, bool is_head, const ReplicaSnapshot& replica);
  void Compare(const Seen& seen, const ReplicaSnapshot& replica);

  Violations& violations_;
  // By history, chain epoch and record.
  std::map<std::tuple<ShardHistory, uint64_t, uint64_t>, Seen> of_chain_;
  // By history and record.
  std::map<std::tuple<ShardHistory, uint64_t>, Seen> durable_;
};

}  // namespace covey::sim
