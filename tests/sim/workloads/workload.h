// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/config/sim_config.h"

namespace covey::sim {

// The use of a simulated cluster, and its correctness conditions. After SetUp the cluster runs with
// faults. It is then healed and must become Finished in time; Check comes last.
//
// Actor-confined. Outlives the cluster that it was set up in.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  // The number of groups that the cluster must have, of one worker each unless Adapt changes that.
  virtual uint32_t groups() const = 0;
  // Adapts the drawn configuration to this workload.
  virtual void Adapt(SimConfig&) const {}
  // Whether workers that are late, or return, get groups.
  virtual bool is_elastic() const { return false; }
  // Adds the worker nodes, and the observers of what they do.
  virtual void SetUp(SimCluster& cluster) = 0;
  virtual bool Finished() const = 0;
  // Checks the final state; observers have checked the rest all along.
  virtual void Check() = 0;
  // One line: a summary of the work.
  virtual std::string Report() const = 0;
};

}  // namespace covey::sim
