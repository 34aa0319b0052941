// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::sim {

// Says which element of a shard belongs to which step. Every step of every group owns one element
// of each shard: step t, counted from 1, of the group at position p has element p * steps + t - 1.
//
// Actor-confined.
class StepElements {
 public:
  // `steps`: of each group.
  explicit StepElements(uint64_t steps) : steps_(steps) {}

  // A view of a later epoch, with all groups.
  void NoteView(const proto::ClusterView& view);

  uint64_t steps() const { return steps_; }
  // In the order of their positions.
  const std::vector<GroupId>& groups() const { return groups_; }
  // Position of a group in the order of all group ids.
  uint64_t PositionOf(GroupId group) const;
  uint64_t ElementOf(GroupId group, uint64_t step) const {
    return PositionOf(group) * steps_ + step - 1;
  }
  // Whether the values of a shard contain the step, if only in part.
  bool Includes(std::span<const float> values, GroupId group, uint64_t step) const;

 private:
  const uint64_t steps_;
  std::vector<GroupId> groups_;
};

}  // namespace covey::sim
