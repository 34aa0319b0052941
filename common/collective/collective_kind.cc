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
    case CollectiveKind::kExchange:
      return "exchange";
  }
  return "collective";
}

bool HasReduction(CollectiveKind kind) {
  return kind != CollectiveKind::kAllGather && kind != CollectiveKind::kBroadcast;
}

bool HasSpreading(CollectiveKind kind) {
  return kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kExchange;
}

}  // namespace covey
