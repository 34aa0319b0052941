// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/faults/fault.h"
#include "common/simulation/simulator.h"
#include "tests/sim/network/host_id.h"
#include "tests/sim/network/impairments.h"
#include "tests/sim/network/sim_network.h"
#include "tests/sim/process/process.h"

namespace covey::sim {

// Carries out a fault plan on simulated processes and their network.
//
// Actor-confined. Deterministic. All arguments outlive it.
class FaultInjector {
 public:
  struct World {
    Simulator& simulator;
    SimNetwork& network;
    const std::vector<std::unique_ptr<Process>>& processes;
    // Starts a process that was killed; every such process runs at the end.
    std::function<void(size_t process)> start;
    // Marks a process as dead forever.
    std::function<void(size_t process)> bury;
    // The connections between two hosts have broken.
    std::function<void(HostId, HostId)> disconnected;
  };
  explicit FaultInjector(World world) : world_(std::move(world)) {}

  // Precondition: every name in the plan is that of a process.
  void Schedule(const FaultPlan& plan);
  // Ends all faults, and injects no more.
  void Heal();

 private:
  struct Active {
    Fault fault;
    uint64_t impairment = 0;  // id of the network's impairment, 0 = none
  };

  size_t IndexOf(const std::string& name) const;
  HostId HostOf(const std::string& name) const;
  void Begin(uint64_t number, const Fault& fault);
  void BeginAtProcess(const Fault& fault);
  void BeginOnLinks(const Fault& fault);
  void End(const Active& active);
  Impairment ImpairmentBy(const Fault& fault) const;
  void Both(HostId a, HostId b, void (SimNetwork::*change)(HostId, HostId));
  void AllOf(const std::string& name, void (SimNetwork::*change)(HostId, HostId));

  const World world_;
  bool healed_ = false;
  std::map<uint64_t, Active> active_;  // by position in the plan
};

}  // namespace covey::sim
