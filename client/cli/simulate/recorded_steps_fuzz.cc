// SPDX-License-Identifier: Apache-2.0
// Files with the steps of a real run.
#include "client/cli/simulate/recorded_steps.h"

#include <cmath>
#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"worker": 0, "step": 1, "compute_seconds": 0.012})",
      "{\"worker\": 3, \"step\": 2, \"compute_seconds\": 1e-3, \"else\": [1, {}]}\n\n"
      "{\"worker\": 3, \"step\": 1, \"compute_seconds\": 0}\n",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto recorded = cli::ParseRecordedSteps(FuzzText(input));
  if (!recorded.ok()) return false;
  COVEY_CHECK(!recorded->empty() && std::isfinite(recorded->MeanSeconds()));
  for (const std::vector<double>& worker : recorded->workers) COVEY_CHECK(!worker.empty());
  return true;
}

}  // namespace covey
