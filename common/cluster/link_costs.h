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

// The cost of sending between two members whose narrowest common domain is of one level.
struct LinkCost {
  // From the sender's loop to the receiver's, for a small message.
  double latency_seconds = 0;
  // Bandwidth of a single flow, undisturbed by others.
  double bytes_per_second = 0;
  // Bandwidth that all flows leaving one domain of this level share, and likewise all flows
  // entering it: for a host that of its network card, for a rack that of its uplink. Undefined for
  // kCluster.
  double uplink_bytes_per_second = std::numeric_limits<double>::infinity();
};

// The network as the cost model and the group planner see it.
struct LinkCosts {
  // Indexed by Level. The defaults are those of processes on hosts with 25 Gbit/s Ethernet.
  std::array<LinkCost, kLevels> levels = {
      LinkCost{.latency_seconds = 20e-6, .bytes_per_second = 4e9},
      LinkCost{.latency_seconds = 20e-6, .bytes_per_second = 4e9, .uplink_bytes_per_second = 3e9},
      LinkCost{.latency_seconds = 40e-6, .bytes_per_second = 3e9},
      LinkCost{.latency_seconds = 60e-6, .bytes_per_second = 3e9},
      LinkCost{.latency_seconds = 60e-6, .bytes_per_second = 3e9}};
  // Time that a member's loop spends on one message of any size, while other members of its host
  // work, too. A part of each latency, so not more than any of them.
  double message_seconds = 5e-6;
  // For each further peer of the same level that sends to a member, or that it sends to, the
  // member's link loses this fraction of its bandwidth, because many flows through one port disturb
  // each other. At least half of the bandwidth remains.
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
  // Above 1: that many messages of `bytes` went at once, and as many came back.
  uint32_t messages = 1;
  // Until the last one was back.
  double round_trip_seconds = 0;
};

// Costs fitted to measurements.
//
// For each level and size only the shortest round trip counts, since noise only adds. The latency
// is half of the smallest size's round trip; the bandwidth is that of the largest size beyond the
// smallest. A level with only one size measured keeps the bandwidth of `otherwise`. A level without
// samples takes both numbers from the next narrower level with samples, or else from the next wider
// one. slice_bytes stay those of `otherwise`. Samples that are not positive and finite are ignored.
//
// Each of n messages that go and come at once costs a member's loop half of what it adds to the
// round trip: message_seconds is the median of
//
//   (seconds of n messages - the level's shortest seconds of one) / (2 (n - 1))
//
// within kMessageSecondsMin and kMessageSecondsMax; without such samples that of `otherwise`. The
// median, because members that share processors slow each other down, and do so in collectives.
// Latencies are at least message_seconds.
//
// Measurements of one flow at a time do not show what several flows share. But when a flow out of a
// domain is clearly slower than one inside it, the uplink of that domain is narrow: all flows out
// of the domain are then expected to share the bandwidth of that one flow. Otherwise the uplink is
// that of `otherwise`, and at least the bandwidth of one flow.
//
// Pure; independent of the order of samples.
inline constexpr double kMessageSecondsMin = 0.5e-6;
inline constexpr double kMessageSecondsMax = 1e-3;
LinkCosts FitLinkCosts(std::span<const LinkSample> samples, const LinkCosts& otherwise = {});

}  // namespace covey
