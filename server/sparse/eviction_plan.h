// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/sparse/eviction.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {

// The evictions that make room for the new rows of an update, and for its keys that will wait for
// admission. From a fill of 95 % on, a part of the shard gives up so many of its rows that the
// whole would be 90 % full if all parts did; where the update needs more room than that, several
// parts do. Rows that the update holds stay. At most limits.h kEvictionsPerRecordMax.
//
// Pure; a function of the shard's content and the keys. Costs a lookup for each key where the shard
// is nearly full, and a pass over the entries of the parts where something has to go. Precondition:
// the keys ascend.
std::vector<Eviction> PlanEvictions(const SparseShard& shard, std::span<const uint64_t> keys);

}  // namespace covey::server
