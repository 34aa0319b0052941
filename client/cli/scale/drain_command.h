// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey drain NODE`: asks a server or worker to leave gracefully, or cancels that.
int DrainCommand(int count, const char* const* arguments);

}  // namespace covey::cli
