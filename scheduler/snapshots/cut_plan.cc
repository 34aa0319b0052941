// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/cut_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"

namespace covey::scheduler {
namespace {

// How the steps of the groups depend on each other.
struct Coupling {
  bool has_common_step = false;
  uint64_t multiple_of = 1;
};

absl::StatusOr<Coupling> CouplingOf(const proto::ClusterView& view) {
  Coupling coupling;
  for (const proto::Table& table : view.tables()) {
    COVEY_ASSIGN_OR_RETURN(const Contract contract, ContractInForce(table));
    switch (contract.kind) {
      case Contract::Kind::kLocal:
        coupling.multiple_of = std::lcm(coupling.multiple_of, contract.local_steps);
        [[fallthrough]];
      case Contract::Kind::kBsp:
      case Contract::Kind::kSsp:
        coupling.has_common_step = true;
        break;
      case Contract::Kind::kAsync:
      case Contract::Kind::kBuffered:
        break;
    }
  }
  return coupling;
}

}  // namespace

absl::StatusOr<std::vector<proto::CutStep>> PlanCut(const proto::ClusterView& view,
                                                    const StepForecast& forecast, absl::Time at) {
  COVEY_ASSIGN_OR_RETURN(const Coupling coupling, CouplingOf(view));
  std::vector<proto::CutStep> cut;
  uint64_t furthest = 0;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    if (!forecast.Knows(group)) {
      return absl::UnavailableError(
          absl::StrCat("not all workers of group ", group.id(), " have reported their steps yet"));
    }
    proto::CutStep& last = cut.emplace_back();
    last.set_group(group.id());
    last.set_step(forecast.StepAt(group, at));
    furthest = std::max(furthest, last.step());
  }
  for (proto::CutStep& last : cut) {
    const uint64_t step = coupling.has_common_step ? furthest : last.step();
    last.set_step((step + coupling.multiple_of - 1) / coupling.multiple_of * coupling.multiple_of);
  }
  return cut;
}

}  // namespace covey::scheduler
