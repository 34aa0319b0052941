// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/engine/request_engine.h"
#include "common/base/random.h"
#include "common/runtime/member.h"
#include "scheduler/config.h"
#include "server/table/testing/sim_device.h"
#include "tests/sim/config/elasticity.h"
#include "tests/sim/network/sim_network.h"
#include "tests/sim/process/sim_log.h"
#include "tests/sim/process/sim_store.h"

namespace covey::sim {

// One simulated cluster. Every tunable is drawn inside its valid range, so that no default becomes
// load-bearing.
struct SimConfig {
  // Number of servers at the beginning.
  uint32_t servers = 1;
  uint32_t data_loops = 1;
  // Per server, later ones included: whether it keeps its tables on a simulated device.
  std::vector<bool> has_device;
  server::SimDevice::Options device;
  Elasticity elasticity;
  // No faults except the operations of `elasticity`; no user may notice those.
  bool quiet = false;
  scheduler::Config scheduler;
  // Timing only; identity and endpoints differ per process.
  Member::Options member;
  client::RequestEngine::Options client;
  NetworkConfig network;
  // Used where scheduler.store names one.
  SimStore::Options store;
  SimLog::Options log;

  bool reuse_endpoints = false;
  absl::Duration call_cost_max;
  size_t inbox_max = 0;
  // The clock of each machine drifts by up to this (tests/sim/process/local_clock.h).
  int64_t clock_drift_max = 0;
  // Limits are small, so that the run reaches them (common/base/small_limits.h). Not under local: a
  // client that has no memory to keep a late change waits for the next round, and here groups that
  // have ended begin none.
  bool small_limits = false;

  // The share of the drawn faults that happen.
  double fault_share = 1;
  // Links between any two processes may fail; else only those of the scheduler and the servers.
  bool all_links_fail = false;
  // The duration of the faults, and the time that the cluster then has to finish its work.
  absl::Duration safety;
  absl::Duration liveness = absl::Seconds(1200);
  // Time after the last fault within which a push is answered.
  absl::Duration answer = absl::Seconds(1200);
  // Time after the last fault within which every shard has all its replicas again.
  absl::Duration repair = absl::Seconds(300);

  // Probability that the scheduler learns of a process's end from its broken connection.
  double connection_lost_chance = 1;
};

// `groups`: their number, of one worker each.
SimConfig DrawConfig(Random random, uint32_t groups);
// One line.
std::string Describe(const SimConfig& config);

// Log-uniform in [low, high]: short and long are equally likely to be tried.
absl::Duration DrawDuration(Random& random, absl::Duration low, absl::Duration high);

}  // namespace covey::sim
