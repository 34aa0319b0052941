// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/engine/request_engine.h"
#include "common/base/random.h"
#include "common/runtime/member.h"
#include "scheduler/config.h"
#include "tests/sim/elasticity.h"
#include "tests/sim/sim_network.h"

namespace covey::sim {

// One simulated cluster. Every tunable is drawn inside its valid range, so that no default becomes
// load-bearing.
struct SimConfig {
  // From the beginning on.
  uint32_t servers = 1;
  uint32_t data_loops = 1;
  Elasticity elasticity;
  // Nothing goes wrong, but for what the elasticity asks for: then nobody may notice it.
  bool quiet = false;
  scheduler::Config scheduler;
  // Timing only; who it is and where it listens differs per process.
  Member::Options member;
  client::RequestEngine::Options client;
  NetworkConfig network;

  bool reuse_endpoints = false;
  absl::Duration call_cost_max;
  absl::Duration disk_delay_max;
  size_t inbox_max = 0;

  // So many of the faults that are drawn happen.
  double fault_share = 1;
  // Links between any two processes fail; else those of the scheduler and the servers.
  bool all_links_fail = false;
  // How long faults go on; and how long the cluster then has to finish its work.
  absl::Duration safety;
  absl::Duration liveness = absl::Seconds(1200);
  // So long after the last fault every shard has all its replicas again.
  absl::Duration repair = absl::Seconds(300);

  // So often the scheduler hears that a process is no more, from the connection that it had.
  double connection_lost_chance = 1;
};

// `groups` of one worker each.
SimConfig DrawConfig(Random random, uint32_t groups);
// One line.
std::string Describe(const SimConfig& config);

// Log-uniform in [low, high]: short and long are equally likely to be tried.
absl::Duration DrawDuration(Random& random, absl::Duration low, absl::Duration high);

}  // namespace covey::sim
