// SPDX-License-Identifier: Apache-2.0
#include "common/collective/algorithm.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace covey {

const char* AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAutomatic:
      return "auto";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kMultiRing:
      return "multi-ring";
    case Algorithm::kHierarchical:
      return "hierarchical";
    case Algorithm::kHalvingDoubling:
      return "halving-doubling";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kOneShot:
      return "one-shot";
  }
  return "unknown";
}

absl::StatusOr<Algorithm> ParseAlgorithm(absl::string_view name) {
  if (name == AlgorithmName(Algorithm::kAutomatic)) return Algorithm::kAutomatic;
  std::string names = AlgorithmName(Algorithm::kAutomatic);
  for (const Algorithm algorithm : kAlgorithms) {
    if (name == AlgorithmName(algorithm)) return algorithm;
    absl::StrAppend(&names, ", ", AlgorithmName(algorithm));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no collective algorithm is called '", name, "'; choose one of ", names));
}

}  // namespace covey
