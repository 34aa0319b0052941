// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

// How values travel between members. Every algorithm is a choice of trees, see Plan.
enum class Algorithm {
  // The cheapest by the cost model; never inside a Plan.
  kAutomatic,
  // Everybody to the owner, the owner to everybody. One message deep; 2 (N - 1) messages a member.
  kDirect,
  // A chain around the ring of ranks that ends at the owner. Moves the fewest bytes per link.
  kRing,
  // Rings of several strides, each with its stripe of every part, so that more links work at once.
  kMultiRing,
  // By topology: inside every domain to the domain's representative for the part, then between
  // domains, level by level. The representatives of different parts differ: all links work.
  kHierarchical,
  // Binomial trees by exclusive or of ranks: log2 N messages deep, and as few bytes as a ring.
  kHalvingDoubling,
  // Binomial trees of whole tensors: log2 N messages deep, one message per member and way.
  kTree,
};
inline constexpr Algorithm kAlgorithms[] = {Algorithm::kDirect,          Algorithm::kRing,
                                            Algorithm::kMultiRing,       Algorithm::kHierarchical,
                                            Algorithm::kHalvingDoubling, Algorithm::kTree};

// "auto", "direct", "ring", "multi-ring", "hierarchical", "halving-doubling", "tree".
const char* AlgorithmName(Algorithm algorithm);
// INVALID_ARGUMENT: lists the names.
absl::StatusOr<Algorithm> ParseAlgorithm(absl::string_view name);

}  // namespace covey
