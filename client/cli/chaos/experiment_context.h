// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/run/plan/launch_plan.h"

namespace covey::cli {

// The environment that the caller of an experiment provides.
struct ExperimentContext {
  LocalPaths binaries;
  // The program of the workers, for experiments that have some.
  std::string worker_binary;
  // Shows a line of progress.
  std::function<void(absl::string_view)> say;
};

}  // namespace covey::cli
