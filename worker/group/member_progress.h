// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/cluster/ids.h"

namespace covey::worker {

// What a member tells the others about its model when they meet after an interruption, so that all
// can agree on what is to be done again (group.proto, MemberProgress). Values.

struct BucketProgress {
  // The newest step of which the member has the values.
  Step finished;
  // Pulls that the member has begun, and whether the last of them is not over.
  uint64_t pulls = 0;
  bool waits_for_pull = false;
  // The newest step of which the member knows what LOCAL rounds have learned; nullopt: it knows
  // nothing of LOCAL rounds.
  std::optional<Step> learned;

  friend bool operator==(const BucketProgress&, const BucketProgress&) = default;
};

// The norm of the group's gradient of a step, as the members that divided it have computed it.
struct GradientNorm {
  Step step;
  double norm = 0;

  friend bool operator==(const GradientNorm&, const GradientNorm&) = default;
};

struct MemberProgress {
  // Empty: the member has no model yet.
  std::vector<BucketProgress> buckets;
  // The newest that the member knows, where gradients are clipped.
  std::optional<GradientNorm> norm;

  friend bool operator==(const MemberProgress&, const MemberProgress&) = default;
};

}  // namespace covey::worker
