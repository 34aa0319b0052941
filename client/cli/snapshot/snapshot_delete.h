// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/store/folder.h"

namespace covey::cli {

// What a deletion has left.
struct DeletedSnapshot {
  // Its files that stay, because these snapshots refer to them.
  std::set<std::string> kept;
  std::vector<std::string> needed_by;
};

// Deletes the snapshot in `folder`: its manifest first, and its files but those to which other
// snapshots refer. Files of earlier snapshots that were left for it alone go, too.
//
// FAILED_PRECONDITION, unless `force`: it is the newest complete one, a cluster may be writing it,
// or a newer one cannot be read that may need it. NOT_FOUND: there is none. Others as Folder's.
// Blocks.
absl::StatusOr<DeletedSnapshot> DeleteSnapshot(Folder& store, const std::string& folder,
                                               bool force);

}  // namespace covey::cli
