// SPDX-License-Identifier: Apache-2.0
#include "common/collective/collective_kind.h"

namespace covey {

const char* CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "collective";
}

bool HasReduction(CollectiveKind kind) {
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kBarrier;
}

bool HasSpreading(CollectiveKind kind) { return kind != CollectiveKind::kReduceScatter; }

}  // namespace covey
