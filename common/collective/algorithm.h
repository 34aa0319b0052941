// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

// The way in which values travel between members. Every algorithm is a choice of trees, see Plan.
enum class Algorithm {
  // The cheapest by the cost model. A Plan never has this value.
  kAutomatic,
  // Every member sends to the owner, and the owner to every member. One message deep; 2 (N - 1)
  // messages per member.
  kDirect,
  // A chain around the ring of ranks that ends at the owner. Moves the fewest bytes per link.
  kRing,
  // Rings of several strides, each with a stripe of every part, so that more links are busy at
  // once.
  kMultiRing,
  // By topology: inside every domain to the domain's representative for the part, then between
  // domains, level by level. Different parts have different representatives, so that all links are
  // busy.
  kHierarchical,
  // Binomial trees by exclusive or of ranks: log2 N messages deep, with as few bytes as a ring.
  kHalvingDoubling,
  // Binomial trees of whole tensors: log2 N messages deep, one message per member and direction.
  kTree,
  // In an all-reduce every member sends its values to every other one, and each adds all of them
  // itself, in the order of ranks: one message deep, N - 1 times the bytes, and nothing is spread.
  // In others the same as kDirect.
  kOneShot,
};
inline constexpr Algorithm kAlgorithms[] = {
    Algorithm::kDirect,          Algorithm::kRing, Algorithm::kMultiRing, Algorithm::kHierarchical,
    Algorithm::kHalvingDoubling, Algorithm::kTree, Algorithm::kOneShot};

// "auto", "direct", "ring", "multi-ring", "hierarchical", "halving-doubling", "tree",
// "one-shot".
const char* AlgorithmName(Algorithm algorithm);
// INVALID_ARGUMENT: lists the names.
absl::StatusOr<Algorithm> ParseAlgorithm(absl::string_view name);

}  // namespace covey
