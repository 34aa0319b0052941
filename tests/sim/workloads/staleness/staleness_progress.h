// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "common/cluster/ids.h"

namespace covey::sim {

// The progress of all groups in a run of the workload "staleness". A value, shared by its programs.
struct StalenessProgress {
  std::map<GroupId, uint64_t> begun;  // last step, by group
  std::set<GroupId> finished;         // groups that have finished all steps
  uint64_t succeeded = 0;
  uint64_t failed = 0;
  uint64_t joined_late = 0;  // trainers that began after step 1
  uint64_t switched = 0;     // changes of the contract
};

}  // namespace covey::sim
