// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey bench scaling`: runs a program with 1, 2, 4, … workers on this machine, and compares its
// rates.
int ScalingCommand(int count, const char* const* arguments);

}  // namespace covey::cli
