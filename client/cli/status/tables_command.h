// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey tables`: the tables of a cluster.
int TablesCommand(int count, const char* const* arguments);

}  // namespace covey::cli
