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
  bool has_rounds = false;
  uint64_t multiple_of = 1;  // of which the common step is one
};

absl::StatusOr<Coupling> CouplingOf(const proto::ClusterView& view) {
  Coupling coupling;
  for (const proto::Table& table : view.tables()) {
    COVEY_ASSIGN_OR_RETURN(const Contract contract, ContractInForce(table));
    switch (contract.kind) {
      case Contract::Kind::kLocal:
        coupling.has_rounds = true;
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

bool LosesBits(const proto::Table& table) {
  return table.spec().gradient_format() != proto::WIRE_FLOAT32;
}

// Whether rounding errors are all that a snapshot of the job could lack at a common step: not under
// local, where members hold more.
bool MayAwaitFlush(const proto::ClusterView& view, const Coupling& coupling) {
  return view.feedback_flush_steps() > 0 && coupling.has_common_step && !coupling.has_rounds &&
         !view.has_closing() && std::any_of(view.tables().begin(), view.tables().end(), LosesBits);
}

}  // namespace

absl::StatusOr<CutPlan> PlanCut(const proto::ClusterView& view, const StepForecast& forecast,
                                absl::Time at, Flush flush) {
  COVEY_ASSIGN_OR_RETURN(Coupling coupling, CouplingOf(view));
  CutPlan plan;
  plan.awaits_flush = flush == Flush::kAwaited && MayAwaitFlush(view, coupling);
  if (plan.awaits_flush) coupling.multiple_of = view.feedback_flush_steps();
  uint64_t furthest = 0;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    if (!forecast.Knows(group)) {
      return absl::UnavailableError(
          absl::StrCat("not all workers of group ", group.id(), " have reported their steps yet"));
    }
    proto::CutStep& last = plan.steps.emplace_back();
    last.set_group(group.id());
    last.set_step(forecast.StepAt(group, at));
    furthest = std::max(furthest, last.step());
  }
  for (proto::CutStep& last : plan.steps) {
    const uint64_t step = coupling.has_common_step ? furthest : last.step();
    last.set_step((step + coupling.multiple_of - 1) / coupling.multiple_of * coupling.multiple_of);
  }
  return plan;
}

}  // namespace covey::scheduler
