// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey lookup`: rows of a sparse table.
int LookupCommand(int count, const char* const* arguments);

}  // namespace covey::cli
