// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey::worker {

// When a member whose program is late lets the group go on without it (view.proto, Group): once
// `minimum_members` other members have given their gradients, `grace` after the last of them.
struct LatenessRule {
  uint32_t minimum_members = 0;  // 0 = every member is waited for
  absl::Duration grace = absl::ZeroDuration();

  bool on() const { return minimum_members > 0; }
};

// Counts the other members that are known to have given a gradient for a step: for one bucket, or
// for any.
//
// The count is a lower bound, so the group may wait longer than it has to. A member whose slices go
// to other members first is not counted. A partial sum does not tell which of its members have
// stepped aside; those that a sum without samples shows are not counted.
//
// One case counts a member too many: a member that has stepped aside and is only seen in a sum with
// others is taken for one that gave. Then fewer than the minimum may have given.
//
// A count over any bucket is used only while the member's own program has given nothing for the
// step. So a member that is known to have begun a step gives way only to gradients that are
// certain.
//
// Actor-confined. Deterministic.
class Lateness {
 public:
  // A partial sum for `step` has arrived that holds the gradients of `members`.
  void AddGiven(absl::Time now, Step step, const std::vector<uint32_t>& members) {
    GoTo(step);
    for (const uint32_t member : members) {
      if (given_.insert(member).second) newest_ = now;
    }
  }
  // The partial sum of `members` has no samples: they have given nothing.
  void AddSteppedAside(Step step, const std::vector<uint32_t>& members) {
    GoTo(step);
    stepped_aside_.insert(members.begin(), members.end());
  }
  // When to go on with `step` without the program's gradient; InfiniteFuture() while too few
  // members have given theirs.
  absl::Time DueAt(Step step, const LatenessRule& rule) const {
    if (!rule.on() || step != step_) return absl::InfiniteFuture();
    const auto given = std::count_if(given_.begin(), given_.end(), [this](uint32_t member) {
      return !stepped_aside_.contains(member);
    });
    if (given < rule.minimum_members) return absl::InfiniteFuture();
    return newest_ + rule.grace;
  }

 private:
  void GoTo(Step step) {
    if (step == step_) return;
    step_ = step;
    given_.clear();
    stepped_aside_.clear();
  }

  Step step_;
  // Ranks.
  std::set<uint32_t> given_;
  std::set<uint32_t> stepped_aside_;
  absl::Time newest_;
};

}  // namespace covey::worker
