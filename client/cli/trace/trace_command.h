// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey trace`: what all nodes of a cluster do for some seconds, in one file for Perfetto.
int TraceCommand(int count, const char* const* arguments);

}  // namespace covey::cli
