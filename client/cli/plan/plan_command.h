// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey plan`: by what groups are planned, and what others would bring.
int PlanCommand(int count, const char* const* arguments);

}  // namespace covey::cli
