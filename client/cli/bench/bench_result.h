// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/bench/measure/figure.h"

namespace covey::cli {

// How quiet the machine was: QuietGate::Counts of one cluster, or of all.
struct Quietness {
  uint32_t kept = 0;
  uint32_t rejected = 0;
  uint32_t noisy = 0;
  double foreign_share_max = 0;
  double steal_share_max = 0;
  double waited_seconds = 0;

  void Add(const Quietness& other);
};

// Everything that `covey bench` measured. A value.
struct BenchResult {
  // By name; see ReadEnvironment. Empty in the result of one of several clusters.
  std::vector<std::pair<std::string, std::string>> environment;
  Quietness quietness;
  // Limits and peers that were not measured, and why.
  std::vector<std::string> left_out;
  std::vector<Figure> figures;

  // Appends another cluster's result.
  void Add(BenchResult other);
};

// {"cores", "clients", "servers", "environment", "quietness", "left_out", "figures"}.
std::string ResultAsJson(const BenchResult& result, uint32_t servers);
// INVALID_ARGUMENT: not of that form; figures are required, the rest is not.
absl::StatusOr<BenchResult> ResultFromJson(const std::string& text);
// The table of figures, then a line about the machine, one about its quietness and one per
// left_out.
std::string ResultAsTable(const BenchResult& result);

}  // namespace covey::cli
