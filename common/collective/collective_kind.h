// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// The effect of a collective on a tensor that is cut into one part per member (part i is that of
// member i):
//   reduce-scatter  every member has all parts -> member i has the sum of part i
//   all-gather      member i has part i        -> every member has all parts
//   all-reduce      both, one after the other
//   broadcast       the root has the tensor    -> every member has it
//   barrier         no data: no member leaves before all have arrived
//   exchange        every member has all parts -> member i has part i of every member, one by one
enum class CollectiveKind {
  kReduceScatter,
  kAllGather,
  kAllReduce,
  kBroadcast,
  kBarrier,
  kExchange,
};

// "all-reduce", for errors.
const char* CollectiveName(CollectiveKind kind);

// Whether values travel up the reduction trees of a plan, and down its spreading trees. Those of an
// exchange go up and are not added.
bool HasReduction(CollectiveKind kind);
bool HasSpreading(CollectiveKind kind);

}  // namespace covey
