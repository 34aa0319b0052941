// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/run/launch_plan.h"
#include "client/cli/run/run_options.h"

namespace covey::cli {

// The file that this process runs.
std::string OwnPath();

// Where scheduler and server are: as `options` says, else beside this program (installed, all lie
// in one folder; built, each in that of its role). NOT_FOUND: says what to build. The other paths
// stay empty.
absl::StatusOr<LocalPaths> FindBinaries(const RunOptions& options);

// The example program that pretends to train, for experiments: as `given` says, else beside this
// program, as FindBinaries.
absl::StatusOr<std::string> FindSynthetic(const std::string& given);

}  // namespace covey::cli
