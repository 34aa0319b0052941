// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/cluster/ids.h"
#include "common/simulation/simulator.h"
#include "common/store/folder.h"
#include "proto/view.pb.h"
#include "scheduler/config.h"
#include "scheduler/scheduler_actor.h"
#include "tests/sim/process/process.h"
#include "tests/sim/process/sim_disk.h"

namespace covey::sim {

// The real scheduler's actor as the program of a process. It recovers from the log on the disk, if
// there is one; otherwise it continues the snapshot that the configuration names. Actor-confined.
class SchedulerProgram : public Program {
 public:
  SchedulerProgram(Simulator& simulator, const scheduler::Config& config, SimDisk& disk,
                   Folder& store);

  std::vector<Actor*> loops() override { return {actor_.get()}; }
  NodeId node() const override { return kSchedulerNode; }
  Epoch epoch() const override { return Epoch(actor_->published().epoch()); }
  void Pack(Message& message) override;
  // A change of the view as the view to which it leads.
  std::optional<Message> Shown(const Message& message) const override;
  // The newest published view.
  const proto::ClusterView& published() const { return actor_->published(); }
  // The process would have ended: the job is to stop, since a shard is lost for good.
  bool must_stop() const { return must_stop_; }

 private:
  Simulator& simulator_;
  bool must_stop_ = false;
  std::unique_ptr<scheduler::SchedulerActor> actor_;
};

}  // namespace covey::sim
