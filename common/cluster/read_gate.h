#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "common/cluster/contract.h"
#include "common/cluster/ids.h"
#include "proto/parameter.pb.h"

namespace covey {

// Highest step that a shard has applied, per group. Actor-confined; a value.
class ClockVector {
 public:
  // Clocks never go back: a lower step changes nothing.
  void Advance(GroupId group, Step step);
  // 0 before the first.
  Step StepOf(GroupId group) const;

  // All clocks in growing order of group, and the digest of them and the version.
  void Describe(Version version, proto::ShardState& state) const;

 private:
  absl::btree_map<GroupId, Step> steps_;
};

// How fresh an answer must be. The conditions are ANDed.
struct ReadRequirement {
  // Every live group has reached this step.
  std::optional<Step> step;
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
  const std::vector<GroupId>& live_groups;
  Version version;
  absl::Duration age;
};

// Whether the shard may answer. Pure; O(live groups).
bool IsMet(const ReadRequirement& requirement, const Freshness& freshness);

// What is missing, for people: "group 2 is at step 4 of 6". Empty when nothing is.
std::string Missing(const ReadRequirement& requirement, const Freshness& freshness);

}  // namespace covey
