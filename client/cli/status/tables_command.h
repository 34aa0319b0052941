// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey tables`: what a cluster holds.
int TablesCommand(int count, const char* const* arguments);

}  // namespace covey::cli
