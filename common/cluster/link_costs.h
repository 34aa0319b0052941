// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "common/cluster/limits.h"
#include "common/cluster/topology.h"

namespace covey {

// What it costs to send between two members whose narrowest common domain is of one level.
struct LinkCost {
  // From the sender's loop to the receiver's, for a small message.
  double latency_seconds = 0;
  // One flow that is alone on its way.
  double bytes_per_second = 0;
  // What all flows that leave, or enter, one domain of this level share, in each direction: of a
  // host its network card, of a rack its uplink. Means nothing for kCluster.
  double uplink_bytes_per_second = std::numeric_limits<double>::infinity();
};

// The network, as cost model and group planner see it.
struct LinkCosts {
  // Indexed by Level. The defaults are those of processes on hosts with 25 Gbit/s Ethernet.
  std::array<LinkCost, kLevels> levels = {
      LinkCost{.latency_seconds = 20e-6, .bytes_per_second = 4e9},
      LinkCost{.latency_seconds = 20e-6, .bytes_per_second = 4e9, .uplink_bytes_per_second = 3e9},
      LinkCost{.latency_seconds = 40e-6, .bytes_per_second = 3e9},
      LinkCost{.latency_seconds = 60e-6, .bytes_per_second = 3e9},
      LinkCost{.latency_seconds = 60e-6, .bytes_per_second = 3e9}};
  // What a member's loop spends on one message, however small. Not more than any latency, which it
  // is a part of.
  double message_seconds = 5e-6;
  // A member's link loses so much of its bandwidth for each further peer of the same level that
  // sends to it, or that it sends to: many flows into one port get in each other's way. Half of the
  // bandwidth stays.
  double flow_loss = 0.02;
  // Larger sections travel as several messages, so that hops work at once.
  size_t slice_bytes = kSliceBytesMax;

  LinkCost& at(Level level) { return levels[static_cast<size_t>(level)]; }
  const LinkCost& at(Level level) const { return levels[static_cast<size_t>(level)]; }
};

// One measurement: `bytes` went to a peer, and a small message came back.
struct LinkSample {
  Level level = Level::kCluster;
  size_t bytes = 0;
  double round_trip_seconds = 0;
};

// Costs from measurements: of each level and size the shortest round trip counts, for noise only
// adds. Half of the smallest size's is the latency; the bandwidth is that of the largest size
// beyond the smallest. A level with one size measured keeps the bandwidth of `otherwise`; a level
// with none takes both numbers from the next narrower level with samples, or else the next wider
// one. message_seconds and slice_bytes stay those of `otherwise`; latencies are at least
// message_seconds. Samples that are not positive and finite are ignored.
//
// One flow at a time does not show what flows share. But where one out of a domain is clearly
// slower than one inside it, something between them is narrow: all that leaves the domain is then
// expected to share what the one flow had. Otherwise the uplink is that of `otherwise`, and never
// less than one flow had.
//
// Pure; independent of the order of samples.
LinkCosts FitLinkCosts(std::span<const LinkSample> samples, const LinkCosts& otherwise = {});

}  // namespace covey
