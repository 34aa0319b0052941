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
#include "scheduler/log/standby.h"
#include "scheduler/scheduler_actor.h"
#include "tests/sim/process/process.h"
#include "tests/sim/process/sim_log.h"

namespace covey::sim {

// The real scheduler's actor as the program of a process. It recovers from its log, if there is
// one; otherwise it continues the snapshot that the configuration names. It ends when it cannot
// open the log. Actor-confined.
class SchedulerProgram : public Program {
 public:
  SchedulerProgram(Simulator& simulator, const scheduler::Config& config, SimLog& log,
                   Folder& store);

  std::vector<Actor*> loops() override { return {&front_}; }
  NodeId node() const override { return kSchedulerNode; }
  Epoch epoch() const override { return Epoch(leads() ? actor_->published().epoch() : 0); }
  Outcome outcome() const override { return leads() ? Outcome::kRunning : Outcome::kFailed; }
  void Pack(Message& message) override;
  // A change of the view as the view to which it leads.
  std::optional<Message> Shown(const Message& message) const override;
  bool leads() const { return front_.leads(); }
  // Whether its log had a state.
  bool has_recovered() const { return has_recovered_; }
  // The newest published view; null unless it leads.
  const proto::ClusterView* published() const { return leads() ? &actor_->published() : nullptr; }
  // The process would have ended: the job is to stop, since a shard is lost for good.
  bool must_stop() const { return must_stop_; }

 private:
  Simulator& simulator_;
  scheduler::Standby front_;
  bool has_recovered_ = false;
  bool must_stop_ = false;
  std::unique_ptr<scheduler::SchedulerActor> actor_;
};

}  // namespace covey::sim
