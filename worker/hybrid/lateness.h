#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
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
// not known of, because its slices go elsewhere first, counts as not given: the group may wait longer
// than it has to. A partial sum does not tell who in it has stepped aside; those known from sums
// without samples count as not given. Who is only heard of together with others, after stepping
// aside, is taken for one that gave: only then may there be fewer than the minimum.
//
// What is known of any bucket counts only where the own program has given none for the step. So a
// member that is known to have begun a step gives way only where enough gradients are sure.
//
// Actor-confined. Deterministic.
class Lateness {
 public:
  // Members whose gradients are in a partial sum for `step` have been heard of.
  void Hear(absl::Time now, Step step, const std::vector<uint32_t>& members) {
    GoTo(step);
    for (const uint32_t member : members) {
      if (members_.insert(member).second) newest_ = now;
    }
  }
  // A partial sum of these has no samples: they have given none, whatever else they pass on.
  void HearNothing(Step step, const std::vector<uint32_t>& members) {
    GoTo(step);
    aside_.insert(members.begin(), members.end());
  }
  // When to go on with `step` without the program's gradient; InfiniteFuture() as long as too few
  // have given theirs.
  absl::Time DueAt(Step step, const LatenessRule& rule) const {
    if (!rule.on() || step != step_) return absl::InfiniteFuture();
    const auto given = std::count_if(members_.begin(), members_.end(),
                                     [this](uint32_t member) { return !aside_.contains(member); });
    if (given < rule.minimum_members) return absl::InfiniteFuture();
    return newest_ + rule.grace;
  }

 private:
  void GoTo(Step step) {
    if (step == step_) return;
    step_ = step;
    members_.clear();
    aside_.clear();
  }

  Step step_;
  // Ranks.
  std::set<uint32_t> members_;
  std::set<uint32_t> aside_;
  absl::Time newest_;
};

}  // namespace covey::worker
