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

// A look that finds workers unmeasured, or away, is repeated after this time.
constexpr absl::Duration kLookAgain = absl::Seconds(1);

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
  Look(now, workers);
}

void GroupReplans::PlaceWaiting(absl::Time now, const std::vector<NodeId>& unplaced) {
  if (unplaced.empty()) {
    unplaced_since_ = absl::InfiniteFuture();
    return;
  }
  unplaced_since_ = std::min(unplaced_since_, now);
  if (now - unplaced_since_ < kPlaceAfter) return;
  const PlanInputs inputs = Inputs(now, experience_);
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

PlanInputs GroupReplans::Inputs(absl::Time now, GroupExperience& experience) const {
  PlanInputs inputs = measurements_.Inputs(now);
  experience.NoteSamples(measurements_.GroupSamples());
  experience.AddTo(now, inputs.model);
  const GroupList present = Present();
  experience.NoteGroups(now, present.size(), measurements_.SamplesPerSecond(),
                        EvaluateGroups(inputs.workers, present, inputs.model).samples_per_second);
  experience.AddTo(now, inputs.model);
  if (inputs.model.group_samples_per_step > 0) {
    inputs.sources.push_back(
        absl::StrFormat("batches: a group of any size trains %.4g samples per step",
                        inputs.model.group_samples_per_step));
  }
  return inputs;
}

void GroupReplans::Look(absl::Time now, const std::vector<NodeId>& workers) {
  if (4 * workers.size() > 5 * experienced_workers_ ||
      4 * workers.size() < 3 * experienced_workers_) {
    experience_ = {};
    experienced_workers_ = workers.size();
    gain_min_ = kReplanGainMin;
  }
  const PlanInputs inputs = Inputs(now, experience_);
  const double measured = measurements_.SamplesPerSecond();
  if (trial_) EndTrial(measured);

  ReplanDecision decision = Replan(inputs.workers, Present(), inputs.options(),
                                   trial_has_ended_ ? kReplanGainMin : gain_min_);
  const bool was_wanted = std::exchange(wants_other_groups_, decision.replan);
  if (decision.replan && !was_wanted) {
    next_ = now + kConfirm;
    return;
  }
  trial_has_ended_ = false;
  if (!decision.replan) return;
  wants_other_groups_ = false;
  if (!inputs.in_step && measured > 0) {
    trial_ = Trial{.measured_before = measured,
                   .promised = decision.plan.samples_per_second * decision.plan.fit,
                   .statistical_ratio =
                       decision.plan.statistical_factor /
                       EvaluateGroups(inputs.workers, Present(), inputs.model).statistical_factor};
  }
  const std::string why = decision.plan.ExplainChoice();
  Apply(decision.plan.Members(),
        why.empty() ? decision.reason : absl::StrCat(decision.reason, "; ", why));
}

void GroupReplans::EndTrial(double measured) {
  const Trial trial = *std::exchange(trial_, std::nullopt);
  trial_has_ended_ = true;
  {
    Transaction change(state_);
    change.Add(PlanMeasured{.groups = Present().size(),
                            .before = trial.measured_before,
                            .measured = measured,
                            .predicted = trial.promised});
    change.Commit();
  }
  const double gain = measured / trial.measured_before * trial.statistical_ratio - 1;
  const double promised = trial.promised / trial.measured_before * trial.statistical_ratio - 1;
  if (gain < promised / 2) gain_min_ = std::min(kGainMinMax, 2 * gain_min_);
}

void GroupReplans::Apply(const GroupList& groups, const std::string& reason) {
  Transaction change(state_);
  const Regrouped regrouped = roster_.Regroup(groups, change);
  change.Add(GroupsPlanned{.groups = groups.size(),
                           .moved = regrouped.moved,
                           .placed = regrouped.placed,
                           .reason = reason});
  change.Commit();
}

void GroupReplans::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  if (state_.view().groups().empty() || state_.view().tables().empty()) return;
  if (measurements_.Workers().empty()) return;
  GroupExperience experience = experience_;
  const PlanInputs inputs = Inputs(now, experience);
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
