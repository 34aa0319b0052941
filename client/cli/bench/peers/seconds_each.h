// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::cli {

// The field "seconds_each" of the last line of `output` that holds a JSON object with it, in
// microseconds. Text before the object, like the name of a process, does not matter. Pure.
// NOT_FOUND: no such line, or no number in it.
absl::StatusOr<std::vector<double>> MicrosecondsIn(absl::string_view output);

}  // namespace covey::cli
