// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/bench/measure/figure.h"
#include "client/cli/bench/measure/quiet_gate.h"

namespace covey::cli {

// The outcome of one turn of a contender.
struct Sample {
  // One per row of the contender.
  std::vector<double> values;
  // All work that the processes did in the turn, also what is not part of the values.
  uint64_t operations = 0;
  uint64_t bytes = 0;
};

// One of several measurements that take turns: an operation of ours, or a limit.
struct Contender {
  // The rows that it fills, without repetitions.
  std::vector<Figure> rows;
  // One turn.
  std::function<absl::StatusOr<Sample>()> measure;
  // Its processes are observed, for Figure::cost.
  bool has_cost = false;
};

// Resources that the processes of client and servers have used since they started.
struct Usage {
  double user_seconds = 0;
  double system_seconds = 0;
  uint64_t context_switches = 0;
  uint64_t page_faults = 0;
};

// How cost is observed; replaced by tests.
struct CostMeter {
  std::function<Usage()> usage;
  // Writes the sizes of the processes.
  std::function<void(Cost&)> memory;
};

struct TurnOptions {
  int repetitions = 7;
};

// Measures all contenders in turns: every repetition runs each of them once, so a slow phase of the
// machine touches all alike, and each repetition begins with another contender, so none always runs
// behind the same one. A first round warms up and is dropped. `gate` decides when a repetition
// begins and whether it counts. Returns the rows of all contenders, in their order.
absl::StatusOr<std::vector<Figure>> MeasureInTurns(std::vector<Contender> contenders,
                                                   const TurnOptions& options, QuietGate& gate,
                                                   const CostMeter& meter);

}  // namespace covey::cli
