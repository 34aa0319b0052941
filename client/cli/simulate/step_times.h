// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/simulate/cluster_options.h"
#include "common/base/random.h"

namespace covey::cli {

// Draws the nodes' computation times. Each node has a stream of its own, so that its times do not
// depend on the grouping.
//
// Recorded steps are drawn together: nodes in the same step of the same group get times that were
// recorded in the same step, because processes on one machine are slow together. A cluster larger
// than the recorded one consists of independent copies of it.
//
// Actor-confined. Deterministic: depends on the options, the seed and the calls only.
class StepTimes {
 public:
  // `random` is split, one stream per node. `options` must outlive it.
  StepTimes(const StepTimeOptions& options, uint32_t nodes, const Random& random);

  // The time of `node`'s next step, which is step `step` of `group`.
  absl::Duration Next(uint32_t node, uint32_t group, uint64_t step);

  // The time of a node without noise, hiccups and slowness.
  absl::Duration ideal() const { return ideal_; }
  // How many times as long a node takes.
  double slowness(uint32_t node) const { return slowness_[node]; }

 private:
  double NextFactor(Random& random) const;
  double RecordedSeconds(uint32_t node, uint32_t group, uint64_t step) const;

  const StepTimeOptions& options_;
  const Random random_;
  const absl::Duration ideal_;
  std::vector<Random> streams_;
  std::vector<double> slowness_;
};

}  // namespace covey::cli
