// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"

namespace covey {

// How long evicted workers stay out: a term that doubles with each further eviction of the same
// worker. Owned by the StragglerLadder. Actor-confined. Deterministic.
class Probation {
 public:
  explicit Probation(absl::Duration term) : term_(term) {}

  // For terms that begin from now on.
  void SetTerm(absl::Duration term) { term_ = term; }

  void OnEviction(NodeId worker) { ++records_[worker].evictions; }
  // `evicted`: workers in no group whose home is set. The term of a worker begins with the first
  // call that names it. Returns those whose term is over, with the group that they go to; when
  // `home` is not among `groups`, `to` is 0 and the caller chooses.
  std::vector<StragglerAction> End(absl::Time now, const std::vector<GroupInForce>& groups,
                                   const std::vector<GroupMember>& evicted);
  // Removes a worker that has departed.
  void Forget(NodeId worker) { records_.erase(worker); }

 private:
  struct Record {
    absl::Time until = absl::InfinitePast();  // not seen as evicted yet
    uint32_t evictions = 0;
  };

  absl::Duration term_;
  std::map<NodeId, Record> records_;
};

}  // namespace covey
