// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "proto/snapshot.pb.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a job that continues a snapshot has one history with the job before. Epochs,
// generations, and the ids of nodes, groups and tables are above all that the earlier job has
// used, except the ids of the snapshot's tables; groups count their steps on; no version is lower
// than that of the snapshot. What is left of the earlier job is refused: its nodes get no
// successful reply from a node of the later job.
//
// Actor-confined.
class OneHistory : public Observer {
 public:
  explicit OneHistory(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

  // The next job begins. It continues this snapshot.
  void StartOver(const proto::SnapshotManifest& manifest);

 private:
  // The highest numbers that views have shown.
  struct Highest {
    uint64_t epoch = 0;
    uint64_t node = 0;
    uint32_t group = 0;
    uint32_t table = 0;
  };
  void CheckView(const proto::ClusterView& view);
  void CheckReceiver(const Message& message);
  void CheckVersion(const ShardReply& reply);
  void CheckAbove(uint64_t epoch, absl::string_view what, uint64_t number, uint64_t before);

  Violations& violations_;
  Highest seen_;
  Highest before_;  // in earlier jobs
  uint64_t steps_before_ = 0;
  std::set<uint32_t> tables_;             // of the snapshot
  std::map<ShardId, uint64_t> versions_;  // in the snapshot
  std::map<ShardId, uint64_t> first_generation_;
};

}  // namespace covey::sim
