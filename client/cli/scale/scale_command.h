// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey scale`: changes the numbers of servers and workers.
int ScaleCommand(int count, const char* const* arguments);

}  // namespace covey::cli
