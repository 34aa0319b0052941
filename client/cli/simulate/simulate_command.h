// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey simulate`: what a cluster would make of a training run, before it is bought.
int SimulateCommand(int count, const char* const* arguments);

}  // namespace covey::cli
