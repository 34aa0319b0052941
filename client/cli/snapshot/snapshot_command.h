// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey snapshot`: lists, shows, verifies, exports, imports and deletes the snapshots in a
// folder.
int SnapshotCommand(int count, const char* const* arguments);

}  // namespace covey::cli
