// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey replay`: goes through a recording again, and compares. Returns the exit code.
int ReplayCommand(int count, const char* const* arguments);

}  // namespace covey::cli
