// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey bench`: the cost of push, pull and round trips on this machine beside what the machine
// allows, measured in turns.
int BenchCommand(int count, const char* const* arguments);

}  // namespace covey::cli
