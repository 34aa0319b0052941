// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/recording/recording.h"
#include "server/replay/replay.h"

namespace covey::cli {

// What `covey replay` shows. Pure.

// A table of a recording: what its shards have gone through again, together.
struct TableReplay {
  std::string name;
  uint64_t shards = 0;
  uint64_t records = 0;
  uint64_t pushes = 0;
  // Digests that were equal.
  uint64_t digests = 0;
  // Records after the last digest of their shard: applied, and not checked.
  uint64_t unchecked = 0;

  void Add(const ShardHistory& history, const server::ReplayedShard& replayed);
};

// "table 'weights' shard 3: the first difference is among records 65 to 128, which hold pushes of
// group 1 (60 to 71), group 2 (58 to 70)"; the numbers of pushes are their steps, or sequences.
std::string DescribeDifference(const ShardHistory& history,
                               const server::ReplayDifference& difference);

// A table, and a sentence below it.
std::string ReplayText(const std::vector<TableReplay>& tables);
std::string ReplayJson(const std::vector<TableReplay>& tables,
                       const std::vector<std::string>& notes);

// One line per record, in the order of the shard: "weights/0 17 v17 group-3:12 samples=64 base=15".
std::string OrderLines(const ShardHistory& history);

}  // namespace covey::cli
