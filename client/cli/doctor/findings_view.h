// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/cli/doctor/finding.h"

namespace covey::cli {

// The output of `covey doctor`. Pure.

// A line for each finding, the remedy behind it, and a sum at the end.
std::string FindingsText(const Findings& findings);
// "findings" (each "level", "check", "seen", "remedy"), "warnings" and "failures".
std::string FindingsJson(const Findings& findings);
bool HasFailure(const Findings& findings);

}  // namespace covey::cli
