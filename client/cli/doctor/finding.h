// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace covey::cli {

// What one check has found. A value.
struct Finding {
  enum class Level { kOk, kWarning, kFailure, kSkipped };

  Level level = Level::kOk;
  // The check's name: "open-files".
  std::string check;
  // The evidence.
  std::string seen;
  // One thing to do; empty where nothing is wrong.
  std::string remedy;
};

using Findings = std::vector<Finding>;

}  // namespace covey::cli
