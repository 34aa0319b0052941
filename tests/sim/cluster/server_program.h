// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/runtime/member.h"
#include "server/replication/replica.h"
#include "server/server_actor.h"
#include "server/shard_actor.h"
#include "server/table/testing/sim_device.h"
#include "tests/sim/process/process.h"
#include "tests/sim/process/replica_snapshot.h"

namespace covey::sim {

// The real server's actors as the program of a process: loop 0 is the control loop, the others are
// data loops. Actor-confined.
class ServerProgram : public Program {
 public:
  struct Options {
    Member::Options member;
    uint32_t data_loops = 1;
    // What each data loop keeps its tables on; nothing: in host memory.
    std::optional<server::SimDevice::Options> device;
    // As server::ShardActor::Options.
    size_t queued_bytes_max = kQueuedBytesDefault;
  };
  explicit ServerProgram(const Options& options);

  std::vector<Actor*> loops() override;
  NodeId node() const override { return control_.member().node(); }
  Epoch epoch() const override { return control_.member().view()->epoch(); }
  const ClusterView* view() const override { return control_.member().view().get(); }
  absl::Duration TakeDeviceTime(size_t loop) override;
  // A server leaves once it has drained, and fails when one of its data loops hangs.
  Outcome outcome() const override;
  // As after SIGTERM.
  void Terminate(absl::Time now, absl::Duration drain_deadline, Outbox& outbox) {
    control_.Leave(now, "signal 15", now + drain_deadline, outbox);
  }

  // Null: the loop is not in the shard's chain, or does not know of it yet.
  const server::Replica* FindReplica(uint32_t loop, ShardId shard) const;
  // The state of the replica in that loop; without content when there is none. `name`: of the
  // process.
  ReplicaSnapshot Snapshot(const std::string& name, uint32_t loop, ShardId shard) const;

 private:
  server::ServerActor control_;
  std::vector<std::unique_ptr<server::ShardActor>> data_;
  std::vector<std::shared_ptr<server::SimDevice>> devices_;  // of data_; empty: host memory
};

}  // namespace covey::sim
