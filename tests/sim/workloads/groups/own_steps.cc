// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/own_steps.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::sim {

std::string MissingOwnStep(const GroupsPlan& plan, size_t tensor, std::span<const float> values,
                           const OwnSteps& own) {
  const Contract::Kind kind = plan.tables[tensor].contract.kind;
  if (kind != Contract::Kind::kBsp && kind != Contract::Kind::kSsp) return "";
  COVEY_CHECK(own.first.value() > 0);
  for (uint64_t step = own.first.value(); step <= own.last.value(); ++step) {
    for (size_t first = 0; first < values.size(); first += plan.elements()) {
      const float value = values[first + own.position * plan.steps() + step - 1];
      if (plan.distributed() ? value > 0.9999f && value < 1.0001f : value > 0) continue;
      return absl::StrCat("got ", value, " for its group's step ", step, " in shard ",
                          first / plan.elements(), " of tensor ", tensor);
    }
  }
  return "";
}

}  // namespace covey::sim
