// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey quarantine PRODUCER`: keeps what a group or client pushes out of the tables with a gate,
// or ends that.
int QuarantineCommand(int count, const char* const* arguments);

}  // namespace covey::cli
