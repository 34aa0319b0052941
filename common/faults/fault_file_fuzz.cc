// SPDX-License-Identifier: Apache-2.0
// Files with faults.
#include "common/faults/fault_file.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      "# none\n",
      "- at: 2.5s   # since the beginning\n  for: 300ms\n  kind: partition\n"
      "  target: server-0\n  args: {other: worker-1}\n",
      "- {at: 4s, kind: kill, target: server-1}\n"
      "- {at: 4s, for: 1m, kind: loss, target: \"*\", args: {chance: 0.05}}\n",
      "[{kind: rate, target: '*', args: {bits_per_second: 1000000}}]",
      "- &a {kind: slow, target: worker-0, args: {factor: 2.5}}\n- *a\n",
      "- {kind: delay, target: worker-0, args: {by: 1h30m, other: server-2}}\n",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto plan = ParseFaultPlan(FuzzText(input), "FILE");
  if (!plan.ok()) {
    COVEY_CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  const std::string text = PrintFaultPlan(*plan);
  const auto again = ParseFaultPlan(text, "FILE");
  COVEY_CHECK(again.ok());
  COVEY_CHECK(again->size() == plan->size());
  COVEY_CHECK(PrintFaultPlan(*again) == text);
  return true;
}

}  // namespace covey
