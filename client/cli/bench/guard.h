// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/bench/bench_options.h"
#include "client/cli/bench/measure/figure.h"
#include "client/cli/bench/measure/statistics.h"
#include "client/cli/console/terminal.h"

namespace covey::cli {

// One row of a comparison of two builds.
struct Comparison {
  enum class Verdict {
    // The whole interval lies below 1 - tolerance.
    kSlower,
    // The whole interval lies above 1 - tolerance.
    kNotSlower,
    // The interval holds 1 - tolerance: more repetitions would tell.
    kUnclear,
  };

  // Medians of both, in the figure's unit.
  Figure figure;
  double ours = 0;
  double other = 0;
  // Of the speeds, per repetition: above 1, this build is faster; times are inverted.
  double ratio = 0;
  Interval interval;
  Verdict verdict = Verdict::kUnclear;
};

// "slower", "not slower", "unclear".
const char* VerdictName(Comparison::Verdict verdict);

// Compares what both measured in all runs: medians of rates and of round trips, not tails and not
// limits. `ours` and `other`: the figures of one run each, of which run i of both followed one
// another. Pure.
std::vector<Comparison> Compare(const std::vector<std::vector<Figure>>& ours,
                                const std::vector<std::vector<Figure>>& other, double tolerance);

// Whether any row is slower.
bool HasSlower(const std::vector<Comparison>& rows);

std::string ComparisonsAsTable(const std::vector<Comparison>& rows);
// {"against", "tolerance", "slower", "rows": […]}.
std::string ComparisonsAsJson(const std::vector<Comparison>& rows, const BenchOptions& options);

// Runs this program and the build at `options.against` in turns, `options.repetitions` times each
// with a cluster of its own every time, first one and then the other ahead. The other build may be
// of an older version: it gets those options that its --help names.
absl::StatusOr<std::vector<Comparison>> CompareBuilds(const BenchOptions& options,
                                                      Terminal& terminal);

}  // namespace covey::cli
