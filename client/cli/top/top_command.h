// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey top`: a cluster on a terminal, as it is now.
int TopCommand(int count, const char* const* arguments);

}  // namespace covey::cli
