// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey drain NODE`: asks a server or worker to go without harm, or to stay after all.
int DrainCommand(int count, const char* const* arguments);

}  // namespace covey::cli
