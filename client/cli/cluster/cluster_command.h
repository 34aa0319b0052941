// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey cluster`: starts, shows and ends a cluster on plain hosts, over ssh.
int ClusterCommand(int count, const char* const* arguments);

}  // namespace covey::cli
