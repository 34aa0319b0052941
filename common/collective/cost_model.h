// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/plan.h"

namespace covey {

// The expected duration of a collective and its parts, in seconds on an otherwise idle network.
struct Prediction {
  double seconds = 0;  // latency + transfer
  // The longest path through the trees, or the time that the busiest member spends on its messages,
  // whichever is more. Dominates for small tensors.
  double latency_seconds = 0;
  // The busiest link or uplink, or the longest path of one slice. Dominates for large tensors.
  double transfer_seconds = 0;
  // `seconds` if levels did not work at the same time: the latency, plus the busiest link of each
  // level. A real network lies between this and `seconds`.
  double stepwise_seconds = 0;
  // Most messages that one member sends and receives.
  double messages = 0;
  // Most bytes that leave, or enter, one domain of each level; 0 for kCluster.
  std::array<double, kLevels> uplink_bytes = {};
  // What bounds transfer_seconds: "rack z/r1, out", "member 3, in", "way of a slice".
  std::string bottleneck;
};

// Evaluates the trees of any plan, edge by edge:
//
//   latency  = max( sum of hop latencies on the longest way down a reduction tree, and on that of a
//                   spreading tree;  message_seconds * messages of the busiest member )
//   transfer = max( bytes / bandwidth over every member's own link, and over every uplink, in and
//                   out;  sum of slice / bandwidth on the longest way )
//
// so levels and directions work at the same time, since tensors travel in slices. Sections that a
// member sends at the same height of their trees to the same peer are one message. The classic
// closed forms for rings (2 (N - 1) alpha + 2 (N - 1) / N bytes / bandwidth) and for rings per
// level are special cases; see the test. Where all members own a section, each also copies its own
// values of it.
//
// `paths`: where each member is, by rank; the plan's size. O(sections * members) up to kEdgesMax
// edges; beyond, evenly chosen sections represent the others, and the members of a rack are taken
// to share its load evenly, so that thousands of members take about 10 ms. Pure.
//
// Preconditions: paths.size() == plan.size().
Prediction Predict(const Plan& plan, CollectiveKind kind, size_t bytes,
                   std::span<const TopologyPath> paths, const LinkCosts& costs);
inline constexpr size_t kEdgesMax = 1 << 14;

struct AlgorithmChoice {
  Algorithm algorithm = Algorithm::kRing;
  Prediction prediction;
  // Evidence: seconds of all algorithms, in the order of kAlgorithms.
  std::vector<double> seconds;

  // "halving-doubling 0.31 ms (direct 0.70 ms, ring …)".
  std::string Explain() const;
};

// The cheapest algorithm; of several, the first in kAlgorithms. Pure, so members with the same
// costs make the same choice. Precondition: `paths` is not empty.
AlgorithmChoice ChooseAlgorithm(CollectiveKind kind, size_t bytes,
                                std::span<const TopologyPath> paths, const LinkCosts& costs);

}  // namespace covey
