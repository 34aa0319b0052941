// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/ids.h"
#include "common/collective/part_range.h"
#include "proto/view.pb.h"

namespace covey::worker {

// One member's part of one table: consecutive whole shards, and the elements they hold.
struct TablePart {
  ShardIndex first_shard;
  uint32_t shard_count = 0;  // 0: this member has no part of the table
  PartRange elements;
};

// Assigns each shard of a model's tables to the member of a group that is responsible for it
// between reduce-scatter and all-gather. A shard is never divided, because it takes one push per
// group and step.
//
// Balance: no member has more bytes than the mean over members plus the largest shard. Tables are
// assigned largest first; each goes to the members with the least so far, until they are level, so
// several small tables spread over members.
//
// Pure: every member computes the same map from the same tables. Immutable.
class PartMap {
 public:
  // `tables` in the order of the model; members >= 1. O(tables * members * log members + shards).
  PartMap(std::span<const proto::Table* const> tables, uint32_t members);

  // One entry per member.
  const std::vector<TablePart>& parts_of(size_t table) const { return parts_[table]; }
  // The same as element ranges, in the form that collectives need.
  std::vector<PartRange> ranges_of(size_t table) const;

 private:
  std::vector<std::vector<TablePart>> parts_;  // [table][member]
};

}  // namespace covey::worker
