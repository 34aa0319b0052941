// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/simulate/recorded_steps.h"
#include "common/collective/algorithm.h"
#include "common/contract/contract.h"
#include "common/grouping/stragglers/straggler_rung.h"

namespace covey::cli {

// The speed of the links. Links carry this rate in each direction at the same time.
struct LinkOptions {
  // Of each node to its rack's switch.
  double node_bytes_per_second = 25e9 / 8;
  // Of each rack to all others and to the servers. 0 = unlimited.
  double uplink_bytes_per_second = 0;
  // Of each server.
  double server_bytes_per_second = 25e9 / 8;
  // The time that a node's loop needs per message, sent or received. Part of any latency.
  absl::Duration message_time = absl::Microseconds(5);
  // The latency of one message, one way: inside a rack, between racks, and between a node and a
  // server.
  absl::Duration rack_latency = absl::Microseconds(20);
  absl::Duration uplink_latency = absl::Microseconds(30);
  absl::Duration server_latency = absl::Microseconds(30);
};

// A node that takes `factor` times as long as others for all its computation.
struct SlowNode {
  uint32_t rank = 0;
  double factor = 1;
  friend bool operator==(const SlowNode&, const SlowNode&) = default;
};

// The duration of the nodes' computation.
struct StepTimeOptions {
  // The median step, without the effects below.
  absl::Duration median = absl::Milliseconds(100);
  // Sigma of a lognormal factor on each step of each node.
  double noise = 0;
  // Chance that a step of a node takes `hiccup_factor` times as long.
  double hiccup_rate = 0;
  double hiccup_factor = 5;
  std::vector<SlowNode> slow_nodes;
  // Replaces median, noise and hiccups by the recorded steps of a real run. Empty = none.
  RecordedSteps recorded;
};

// The level of detail at which collectives inside groups are simulated.
enum class Detail {
  // kMessages for few nodes, else kModel.
  kAuto,
  // Each message queues on each link.
  kMessages,
  // By the cost model with which groups choose algorithms.
  kModel,
};

// A cluster and its work. A value.
struct ClusterOptions {
  uint32_t nodes = 16;
  uint32_t racks = 1;
  // 0 = none: one group, which holds the parameters itself.
  uint32_t servers = 1;
  Contract contract;
  uint64_t gradient_bytes = 100 << 20;
  // The tensors of the gradient, all of the same size; the communication of one overlaps the
  // computation of others.
  uint32_t tensors = 1;
  // Samples per node and step.
  uint64_t samples = 32;
  LinkOptions links;
  StepTimeOptions step_times;
  // kAutomatic: the cheapest for each group.
  Algorithm collective = Algorithm::kAutomatic;
  Detail detail = Detail::kAuto;
  // The strongest measure that the scheduler may take against stragglers.
  StragglerRung ladder = StragglerRung::kOff;
  // Steps of each group, on average.
  uint64_t steps = 200;
  uint64_t seed = 1;

  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Validate() const;
};

// The rack of each node: racks differ by at most one node.
std::vector<uint32_t> RacksOfNodes(uint32_t nodes, uint32_t racks);

}  // namespace covey::cli
