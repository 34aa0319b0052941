// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace covey::cli {

// One promise, its measurement, and whether the promise was kept.
struct Promise {
  // For humans: "time until a push to a shard of the lost server is acknowledged".
  std::string what;
  double measured = 0;
  double bound = 0;
  // The side of the bound on which the promise is kept.
  enum class Side { kAtMost, kAtLeast };
  Side side = Side::kAtMost;
  // "s", "%", "" for counts.
  std::string unit;

  bool kept() const;
};

// The result of an experiment. A value.
struct Verdict {
  // "kill-server", and one sentence about the fault and its target.
  std::string experiment;
  std::string setting;
  std::vector<Promise> promises;
  // Further results, without a bound: names and values.
  std::vector<std::pair<std::string, std::string>> notes;

  // There are promises, and all of them were kept.
  bool kept() const;
};

// One screen. Pure.
std::string VerdictText(const Verdict& verdict);
// The same as a JSON object: "experiment", "setting", "promises" (each "what", "measured", "bound",
// "side", "unit", "kept"), "notes", "kept". Pure.
std::string VerdictJson(const Verdict& verdict);

}  // namespace covey::cli
