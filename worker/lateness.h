#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey::worker {

// When a member whose program is late lets the group go on without it (view.proto, Group): once
// `minimum_members` others have given their gradients, `grace` after the last of these.
struct LatenessRule {
  uint32_t minimum_members = 0;  // 0 = everybody is waited for
  absl::Duration grace = absl::ZeroDuration();

  bool on() const { return minimum_members > 0; }
};

// Who of the others is known to have given a gradient for a step: of one bucket, or of any. What is
// not known of, because its slices go elsewhere first, counts as not given: so there are never fewer
// than the minimum, and the group may wait longer than it has to.
//
// What is known of any bucket counts only where the own program has given none for the step. So a
// member that is known to have begun a step gives way only where enough gradients are sure.
//
// Actor-confined. Deterministic.
class Lateness {
 public:
  // Members whose gradients are in a partial sum for `step` have been heard of.
  void Hear(absl::Time now, Step step, const std::vector<uint32_t>& members) {
    if (step != step_) {
      step_ = step;
      members_.clear();
    }
    for (const uint32_t member : members) {
      const auto place = std::lower_bound(members_.begin(), members_.end(), member);
      if (place != members_.end() && *place == member) continue;
      members_.insert(place, member);
      newest_ = now;
    }
  }
  // When to go on with `step` without the program's gradient; InfiniteFuture() as long as too few
  // have given theirs.
  absl::Time DueAt(Step step, const LatenessRule& rule) const {
    if (!rule.on() || step != step_ || members_.size() < rule.minimum_members) {
      return absl::InfiniteFuture();
    }
    return newest_ + rule.grace;
  }

 private:
  Step step_;
  std::vector<uint32_t> members_;  // ranks, in growing order
  absl::Time newest_;
};

}  // namespace covey::worker
