// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey simulate`: how a cluster would perform a training run, before it is purchased.
int SimulateCommand(int count, const char* const* arguments);

}  // namespace covey::cli
