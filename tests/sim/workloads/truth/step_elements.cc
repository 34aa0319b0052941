// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/step_elements.h"

#include <algorithm>

namespace covey::sim {

void StepElements::NoteView(const proto::ClusterView& view) {
  groups_.clear();
  for (const proto::Group& group : view.groups()) groups_.push_back(GroupId(group.id()));
}

uint64_t StepElements::PositionOf(GroupId group) const {
  return static_cast<uint64_t>(std::find(groups_.begin(), groups_.end(), group) - groups_.begin());
}

bool StepElements::Includes(std::span<const float> values, GroupId group, uint64_t step) const {
  const uint64_t element = ElementOf(group, step);
  return element < values.size() && values[element] != 0;
}

}  // namespace covey::sim
