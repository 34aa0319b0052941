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
  // Of any group, dead ones too; 0 before the first.
  Step highest() const { return highest_; }

  // All clocks in growing order of group, and the digest of them and the version.
  void Describe(Version version, proto::ShardState& state) const;

 private:
  absl::btree_map<GroupId, Step> steps_;
  Step highest_;
};

// How fresh an answer must be. The conditions are ANDed.
//
//   bsp       every live group is at the reader's step
//   ssp(s)    every live group is at the reader's step - s
//   async, buffered   nothing
//   local     the reader's round has become an update, whoever was part of it. A group that was too
//             late for it gets the values without its own change, which counts in the next round
//
// A group is asked only for steps from its first one on. Whatever the contract, a reader may name a
// staleness of its own instead, and a version and an age besides.
struct ReadRequirement {
  // Every live group has reached this step.
  std::optional<Step> step;
  // This round has become an update. Nothing is owed when no group lives that could bring it.
  std::optional<Step> round;
  // At least this version.
  Version version;
  // The last update is not older.
  absl::Duration age = absl::InfiniteDuration();

  // What a reader's bound means under a contract.
  static ReadRequirement Of(const proto::ReadBound& bound, const Contract& contract);
};

// How fresh a shard is.
struct Freshness {
  const ClockVector& clocks;
  const std::vector<LiveGroup>& live_groups;
  Version version;
  absl::Duration age;
};

// Whether the shard may answer. Pure; O(live groups).
bool IsMet(const ReadRequirement& requirement, const Freshness& freshness);

// What is missing, for people: "group 2 is at step 4 of 6". Empty when nothing is.
std::string Missing(const ReadRequirement& requirement, const Freshness& freshness);

}  // namespace covey
