// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_replans.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// However wrong predictions were, one that promises more than this is tried.
constexpr double kGainMinMax = 10;
// A look that finds workers unmeasured, or away, is repeated after this time.
constexpr absl::Duration kLookAgain = absl::Seconds(1);
// A plan that makes less of the progress before it is given up.
constexpr double kWorse = 0.95;

std::vector<NodeId> AllOf(const std::vector<std::vector<NodeId>>& groups) {
  std::vector<NodeId> all;
  for (const std::vector<NodeId>& group : groups) all.insert(all.end(), group.begin(), group.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

bool GroupReplans::IsPlanned() const {
  return state_.job().plans_groups && !state_.view().groups().empty() && roster_.KnowsSteps();
}

GroupReplans::GroupList GroupReplans::Present() const {
  GroupList present;
  for (const proto::Group& group : state_.view().groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    std::vector<NodeId>& members = present.emplace_back();
    for (const uint64_t member : group.members()) members.push_back(NodeId(member));
  }
  return present;
}

std::vector<NodeId> GroupReplans::Unplaced(const std::vector<NodeId>& workers) const {
  const std::vector<NodeId> placed = AllOf(Present());
  std::vector<NodeId> unplaced;
  std::set_difference(workers.begin(), workers.end(), placed.begin(), placed.end(),
                      std::back_inserter(unplaced));
  return unplaced;
}

bool GroupReplans::AnyAway(absl::Time now, const std::vector<NodeId>& workers) const {
  return std::any_of(workers.begin(), workers.end(),
                     [&](NodeId worker) { return away_.IsAway(now, worker); });
}

void GroupReplans::Tick(absl::Time now) {
  if (!IsPlanned()) return;
  const std::vector<NodeId> workers = measurements_.Workers();
  if (workers.empty()) return;
  const std::vector<NodeId> unplaced = Unplaced(workers);
  PlaceWaiting(now, unplaced);
  if (now < next_) return;
  if (state_.view().tables().empty() || !measurements_.Know(now, workers) ||
      AnyAway(now, workers) || !unplaced.empty()) {
    next_ = now + kLookAgain;
    return;
  }
  next_ = now + std::max(kEvery, static_cast<int64_t>(workers.size()) * kEveryPerWorker);
  if (trial_ && EndTrial(now, workers)) return;
  PlanAgain(now);
}

void GroupReplans::PlaceWaiting(absl::Time now, const std::vector<NodeId>& unplaced) {
  if (unplaced.empty()) {
    unplaced_since_ = absl::InfiniteFuture();
    return;
  }
  unplaced_since_ = std::min(unplaced_since_, now);
  if (now - unplaced_since_ < kPlaceAfter) return;
  const PlanInputs inputs = measurements_.Inputs(now);
  const GroupList present = Present();
  // Other groups may be better now. That is seen when the new workers have been measured.
  constexpr double kAnyGain = std::numeric_limits<double>::infinity();
  const GroupPlan plan = present.empty()
                             ? PlanGroups(inputs.workers, inputs.options())
                             : Replan(inputs.workers, present, inputs.options(), kAnyGain).plan;
  trial_.reset();
  Apply(plan.Members(),
        absl::StrCat(absl::StrJoin(NamesOf(state_.view(), unplaced), ", "), " waited for a group"));
  next_ = now + kLookAgain;
}

void GroupReplans::PlanAgain(absl::Time now) {
  const PlanInputs inputs = measurements_.Inputs(now);
  const GroupList present = Present();
  ReplanDecision decision = Replan(inputs.workers, present, inputs.options(), gain_min_);
  const bool was_wanted = std::exchange(wants_other_groups_, decision.replan);
  if (!decision.replan) return;
  if (!was_wanted) {
    next_ = now + kConfirm;
    return;
  }
  wants_other_groups_ = false;
  if (!inputs.in_step) {
    const GroupPlan before = EvaluateGroups(inputs.workers, present, inputs.model);
    trial_ =
        Trial{.before = present,
              .measured_before = measurements_.SamplesPerSecond(),
              .throughput_ratio = decision.plan.samples_per_second / before.samples_per_second,
              .statistical_ratio = decision.plan.statistical_factor / before.statistical_factor};
  }
  const std::string why = decision.plan.ExplainChoice();
  Apply(decision.plan.Members(),
        why.empty() ? decision.reason : absl::StrCat(decision.reason, "; ", why));
}

bool GroupReplans::EndTrial(absl::Time now, const std::vector<NodeId>& workers) {
  const Trial trial = *std::exchange(trial_, std::nullopt);
  const double measured = measurements_.SamplesPerSecond();
  if (!(trial.measured_before > 0) || !(measured > 0)) return false;
  {
    Transaction change(state_);
    change.Add(PlanMeasured{.groups = Present().size(),
                            .before = trial.measured_before,
                            .measured = measured,
                            .predicted = trial.measured_before * trial.throughput_ratio});
    change.Commit();
  }
  const double progress = measured / trial.measured_before * trial.statistical_ratio;
  const double promised = trial.throughput_ratio * trial.statistical_ratio;
  if (progress - 1 < (promised - 1) / 2) {
    gain_min_ = std::min(kGainMinMax, std::max(2 * gain_min_, 1.5 * (promised - 1)));
  }
  if (progress >= kWorse || AllOf(trial.before) != workers) return false;
  Apply(trial.before,
        absl::StrFormat("the groups before made %.0f %% more progress than the plan, which had "
                        "promised %.0f %% more than they",
                        (1 / progress - 1) * 100, (promised - 1) * 100));
  next_ = now + kEvery;
  return true;
}

void GroupReplans::Apply(const GroupList& groups, const std::string& reason) {
  const size_t placed = AllOf(groups).size() - AllOf(Present()).size();
  Transaction change(state_);
  const size_t moved = roster_.Regroup(groups, change);
  change.Add(
      GroupsPlanned{.groups = groups.size(), .moved = moved, .placed = placed, .reason = reason});
  change.Commit();
}

void GroupReplans::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  if (state_.view().groups().empty() || state_.view().tables().empty()) return;
  const PlanInputs inputs = measurements_.Inputs(now);
  if (inputs.workers.empty()) return;
  proto::PlanInputs& plan = *reply.mutable_plan();
  SetPlanInputs(inputs, plan);
  for (proto::PlanWorker& worker : *plan.mutable_workers()) {
    worker.set_step_seconds(measurements_.StepSeconds(NodeId(worker.node())));
  }
  plan.set_measured_samples_per_second(measurements_.SamplesPerSecond());
  plan.set_automatic(state_.job().plans_groups);
  if (IsPlanned() && next_ > now) {
    plan.set_next_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(next_ - now)));
  }
}

}  // namespace covey::scheduler
