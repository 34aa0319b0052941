// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey status`: the nodes of a cluster, its progress and its health.
int StatusCommand(int count, const char* const* arguments);

}  // namespace covey::cli
