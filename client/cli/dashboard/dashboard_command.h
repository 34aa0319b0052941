// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey dashboard`: a page on this machine that shows a running cluster, and changes nothing.
int DashboardCommand(int count, const char* const* arguments);

}  // namespace covey::cli
