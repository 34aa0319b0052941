// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/collective/part_range.h"
#include "common/collective/plan.h"
#include "proto/group.pb.h"
#include "worker/hybrid/lateness.h"

namespace covey::worker {

// Watches how far the other members are, and says when a bucket should step aside for a program
// that is late (lateness.h). Counts the steps that went on without the program.
//
// Actor-confined. Deterministic.
class LatenessMonitor {
 public:
  // Forgets what was known of other members: they are others now, or train another model.
  void Reset(size_t buckets);

  // What a slice says about `bucket`, which travels as `plan` and `parts` say.
  struct Travel {
    const Plan& plan;
    const std::vector<PartRange>& parts;
    size_t elements = 0;
  };
  void Observe(absl::Time now, size_t bucket, const proto::GroupSlice& slice, const Travel& travel);
  // When `bucket` should begin `next` without the program; InfiniteFuture() = it should wait. While
  // the program is away it is waited for, and then it has the grace from its return on.
  absl::Time DueAt(size_t bucket, Step next, const LatenessRule& rule) const;
  // The program is away until then, or was.
  void SetAwayUntil(absl::Time until) { away_until_ = until; }
  bool is_away(absl::Time now) const { return now < away_until_; }

  // The newest step of which the program has given something.
  Step submitted() const { return submitted_; }
  void SetSubmitted(Step step) { submitted_ = step; }
  // Steps up to this one have been counted, if they went on without the program.
  void SetCounted(Step step) { counted_ = step; }
  // A bucket steps aside in `step`.
  void NoteStepAside(Step step);
  uint64_t steps_aside() const { return steps_aside_; }

 private:
  std::vector<Lateness> by_bucket_;
  std::map<Step, Lateness> any_bucket_;  // of the steps that are under way
  absl::Time away_until_ = absl::InfinitePast();
  Step submitted_;
  Step counted_;
  uint64_t steps_aside_ = 0;
};

}  // namespace covey::worker
