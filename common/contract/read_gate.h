// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "proto/parameter.pb.h"

namespace covey {

// Highest step (under local: round) that a shard has applied, per group. Actor-confined; a value.
class ClockVector {
 public:
  // Clocks never go back: a lower step changes nothing.
  void Advance(GroupId group, Step step);
  // 0 before the first.
  Step StepOf(GroupId group) const;
  // Of all groups, dead ones included; 0 before the first.
  Step highest() const { return highest_; }

  // All clocks in growing order of group, and the digest of them and the version.
  void Describe(Version version, proto::ShardState& state) const;

 private:
  absl::btree_map<GroupId, Step> steps_;
  Step highest_;
};

// How fresh a reply must be. All conditions must hold.
//
//   bsp       every live group is at the reader's step
//   ssp(s)    every live group is at the reader's step - s
//   async, buffered   nothing
//   local     the reader's round has become an update, from whichever groups. A group that was too
//             late for it gets the values without its own change, which counts in the next round
//
// A group is waited for only from its first step on; where the shard has lost steps of it, from its
// next push on, because the shard cannot know how far it had come. Under any contract, a reader may
// name another staleness instead, and in addition a version and an age.
struct ReadRequirement {
  // Every live group has reached this step.
  std::optional<Step> step;
  // This round has become an update. No requirement when no live group could contribute it.
  std::optional<Step> round;
  // At least this version.
  Version version;
  // The last update is at most this old.
  absl::Duration age = absl::InfiniteDuration();

  // The meaning of a reader's bound under a contract.
  static ReadRequirement Of(const proto::ReadBound& bound, const Contract& contract);
};

// How fresh a shard is.
struct Freshness {
  const ClockVector& clocks;
  const std::vector<LiveGroup>& live_groups;
  Version version;
  absl::Duration age;
};

// Whether the shard may reply. Pure; O(live groups).
bool IsMet(const ReadRequirement& requirement, const Freshness& freshness);

// The unmet parts of a requirement, for users: "group 2 is at step 4 of 6". Empty when it is met.
std::string Missing(const ReadRequirement& requirement, const Freshness& freshness);

}  // namespace covey
