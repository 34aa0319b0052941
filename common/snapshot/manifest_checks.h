// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "proto/snapshot.pb.h"

namespace covey {

// Whether all parts of a manifest fit each other, so that readers can rely on these:
//
// 1. The folder's name is that of id and epoch; or that of an imported snapshot, and they are 0.
// 2. The state holds a valid view; its tables have valid definitions and different names.
// 3. The groups grow by id, and the view knows them.
// 4. Files have names of a store, in growing order, and sizes of whole blocks; those of other
//    folders belong to earlier snapshots, and hold a shard each.
// 5. The shards are exactly those of the view's tables, in order.
// 6. The pieces of a shard are, in this order: its values, each slot of the table's optimizer,
//    each from the first element to the last without a gap; and the record. Imported: its values
//    alone.
// 7. Every piece lies inside the file that the shard names, and no two overlap.
//
// INVALID_ARGUMENT: names the file, table and shard, and both numbers that differ. Pure. O(n log n)
// for n pieces; allocates in proportion to the manifest.
absl::Status CheckManifest(const proto::SnapshotManifest& manifest);

}  // namespace covey
