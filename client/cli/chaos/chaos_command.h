// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey chaos EXPERIMENT`: injects faults into a cluster of its own on this machine, and reports
// whether the promises held.
int ChaosCommand(int count, const char* const* arguments);

}  // namespace covey::cli
