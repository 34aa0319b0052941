// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace covey::cli {

// Runs a program to its end and returns its standard output. Its errors are dropped unless it
// fails. ABORTED: it failed; the message ends with the last line of its errors. Blocks.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments);

}  // namespace covey::cli
