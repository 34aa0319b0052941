// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey status`: who is in a cluster, how far it is and whether it is healthy.
int StatusCommand(int count, const char* const* arguments);

}  // namespace covey::cli
