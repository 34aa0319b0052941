// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/run/plan/launch_plan.h"
#include "client/cli/run/plan/run_options.h"

namespace covey::cli {

// The path of this process's executable.
std::string OwnPath();

// The paths of scheduler and server: as in `options`, else beside this program (all in one folder
// when installed; in the folder of each role in a build). NOT_FOUND: says what to build. The other
// paths stay empty.
absl::StatusOr<LocalPaths> FindBinaries(const RunOptions& options);

// The example program that simulates training, for experiments: as `given`, else beside this
// program, as for FindBinaries.
absl::StatusOr<std::string> FindSynthetic(const std::string& given);

}  // namespace covey::cli
