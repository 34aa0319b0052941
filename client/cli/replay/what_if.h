// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "server/replay/replay.h"

namespace covey::cli {

// What `covey replay` does under a WhatIf. Pure.

// "adam", "momentum:momentum=0.8,lr=0.1": a kind, then fields of OptimizerConfig; `lr` is the base
// rate. INVALID_ARGUMENT: names the part, and what is allowed.
absl::Status ParseOptimizer(absl::string_view text, server::WhatIf& what_if);
// "" where no optimizer is given.
std::string OptimizerText(const server::WhatIf& what_if);

// How far a table went from the recorded values: Euclidean norms over all its shards.
struct TableDistance {
  std::string name;
  uint64_t recorded_updates = 0;
  uint64_t updates = 0;
  // Sums of squares: of the values as recorded, of the others, and of their differences.
  double recorded = 0;
  double changed = 0;
  double difference = 0;

  void Add(const server::ReplayedShard& as_recorded, const server::ReplayedShard& under_what_if);
};

// A table, and a sentence below it that says what the figures do not show.
std::string DistanceText(const std::vector<TableDistance>& tables, const server::WhatIf& what_if);
std::string DistanceJson(const std::vector<TableDistance>& tables, const server::WhatIf& what_if);

}  // namespace covey::cli
