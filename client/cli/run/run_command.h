// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey run`: a whole cluster on this machine, while the workers' program runs.
int RunCommand(int count, const char* const* arguments);

}  // namespace covey::cli
