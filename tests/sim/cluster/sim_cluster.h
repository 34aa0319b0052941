// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/cluster/view.h"
#include "common/simulation/simulator.h"
#include "scheduler/config.h"
#include "server/replication/replica.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/cluster/scripted_worker.h"
#include "tests/sim/config/sim_config.h"
#include "tests/sim/faults/fault_injector.h"
#include "tests/sim/network/host_id.h"
#include "tests/sim/network/sim_network.h"
#include "tests/sim/process/observer.h"
#include "tests/sim/process/process.h"
#include "tests/sim/process/replica_snapshot.h"
#include "tests/sim/process/sim_log.h"

namespace covey::sim {

// A whole cluster of real actors: one scheduler, the servers, and the nodes that a workload adds. A
// process that ends by itself without being done is restarted, as a supervisor would do. All
// processes share one store of snapshots.
//
// Actor-confined. Deterministic in the simulator's seed. The simulator outlives it; run no event
// after its destruction.
class SimCluster {
 public:
  SimCluster(Simulator& simulator, const SimConfig& config);

  // Call before Start. `make_script` is called at each start of the process.
  Process& AddClient(std::string name, proto::Role role,
                     std::function<std::unique_ptr<Script>(Random)> make_script);
  // The same, for a client that is started `delay` after the others.
  Process& AddLateClient(absl::Duration delay, std::string name, proto::Role role,
                         std::function<std::unique_ptr<Script>(Random)> make_script);
  struct Worker {
    std::string name;
    std::string labels;  // zone/rack/host/device
    worker::Communicator::Options group;
    // Start time, relative to that of the others.
    absl::Duration delay = absl::ZeroDuration();
    // Called at each start of the process.
    std::function<std::unique_ptr<WorkerScript>(Random)> make_script;
  };
  // Call before Start. A worker that talks to the members of its group.
  Process& AddWorker(Worker worker);
  // Call before Start. A client that is registered and does nothing, and a process that registers
  // nowhere; they forge messages (tests/sim/network/forgery.h).
  void AddHostile();
  // Call before Start. The observer outlives the cluster.
  void AddObserver(Observer& observer) { observers_.push_back(&observer); }

  // Call before Start. The process takes no part in the first job.
  void Exclude(const std::string& name) { done_[IndexOf(name)] = true; }

  void Start();
  // Another job, which continues the newest complete snapshot in the store.
  struct NextJob {
    uint32_t servers = 1;
    uint32_t groups = 1;
    // Processes that take no part in it.
    std::set<std::string> absent;
    // Processes of the first job that are not killed.
    std::set<std::string> survivors;
  };
  // Kills all processes at once, and the store; then starts those of the next job, whose scheduler
  // has an empty log.
  void StartOver(const NextJob& next);
  // Precondition: every name in the plan is that of a process.
  void Schedule(const FaultPlan& plan) { injector_.Schedule(plan); }
  // Ends all faults, injects no more, and starts every process that is down, except those dead for
  // ever.
  void Heal();
  bool healed() const { return healed_at_ < absl::InfiniteFuture(); }
  absl::Time healed_at() const { return healed_at_; }
  // Call before Start. The callback runs at each start of the scheduler except the first.
  void OnSchedulerStart(std::function<void(absl::Time)> callback) {
    on_scheduler_start_ = std::move(callback);
  }
  // The scheduler's newest published view; null while no scheduler leads.
  const proto::ClusterView* published() const;
  // The view that the node of a process holds; null = it holds none, or does not run.
  const ClusterView* HeldView(absl::string_view process) const;
  // The scheduler would end the job, since a shard is lost for good. Here it goes on without it.
  bool must_stop() const;
  // The content of the servers that the view names in chains; empty while the scheduler does not
  // run.
  std::vector<ReplicaSnapshot> Replicas() const;
  // The replica in one loop of a server; null when there is none, or when the server does not run.
  const server::Replica* FindReplica(absl::string_view server, uint32_t loop, ShardId shard) const;
  SimStore& store() { return store_; }
  // See SimNetwork.
  void BendSlices(uint64_t one_in) { network_.BendSlices(one_in); }

  const SimConfig& config() const { return config_; }
  Simulator& simulator() const { return simulator_; }
  std::vector<std::string> names() const;
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

 private:
  // The servers are the processes from the second one up to here.
  size_t servers_end() const {
    return 1 + config_.servers + config_.elasticity.late_servers.size();
  }
  int64_t DrawClockDrift(size_t index) const;
  Process::Options OptionsFor(std::string name, std::vector<bool> listening);
  Process& Add(Process::Options options, Process::Factory factory);
  void AddScheduler();
  void AddServer(uint32_t index);
  Member::Options MemberOptions(proto::Role role, const Process::Birth& birth) const;
  client::ClientActor::Options ClientOptions(proto::Role role, const Process::Birth& birth) const;
  // Precondition: there is such a process.
  size_t IndexOf(absl::string_view name) const;
  // Does nothing if the process runs or is done.
  void StartAgain(size_t index);
  void Bury(size_t index);
  void Terminate(const Termination& termination);
  // Tells the scheduler that its connection to a node has broken.
  void TellOfLoss(Process& process);
  void TellOfLoss(NodeId node, Incarnation incarnation);
  Process::Options::Finding Probe(const std::string& endpoint);

  Simulator& simulator_;
  const SimConfig config_;
  scheduler::Config scheduler_;  // of the present job
  SimNetwork network_;
  SimStore store_;
  SimLog log_;
  Random random_;
  std::vector<Observer*> observers_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<bool> done_;              // per process: it must not be restarted
  std::set<size_t> terminated_;         // processes that are started again when they have left
  std::vector<absl::Duration> delays_;  // per process: before the first start
  FaultInjector injector_;
  std::function<void(absl::Time)> on_scheduler_start_;
  absl::Time healed_at_ = absl::InfiniteFuture();
};

}  // namespace covey::sim
