// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace covey::cli {

// One promise, what was measured, and whether that keeps it.
struct Promise {
  // For people: "time until a push to a shard of the lost server is acknowledged".
  std::string what;
  double measured = 0;
  double bound = 0;
  // Which side of the bound is good.
  enum class Side { kAtMost, kAtLeast };
  Side side = Side::kAtMost;
  // "s", "%", "" for counts.
  std::string unit;

  bool kept() const;
};

// What an experiment came to. A value.
struct Verdict {
  // "kill-server", and in one sentence what was done to what.
  std::string experiment;
  std::string setting;
  std::vector<Promise> promises;
  // Worth knowing, without a bound: names and values.
  std::vector<std::pair<std::string, std::string>> notes;

  // All promises are kept, and there are some.
  bool kept() const;
};

// One screen. Pure.
std::string VerdictText(const Verdict& verdict);
// The same as a JSON object: "experiment", "setting", "promises" (each "what", "measured", "bound",
// "side", "unit", "kept"), "notes", "kept". Pure.
std::string VerdictJson(const Verdict& verdict);

}  // namespace covey::cli
