// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey chaos EXPERIMENT`: breaks a cluster of its own on this machine, and says whether what is
// promised held.
int ChaosCommand(int count, const char* const* arguments);

}  // namespace covey::cli
