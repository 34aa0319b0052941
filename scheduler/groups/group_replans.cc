// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_replans.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// A look that finds workers unmeasured, or away, is repeated after this time.
constexpr absl::Duration kLookAgain = absl::Seconds(1);

// A plan is stalled when not all workers have been measured for this long, or so many steps.
constexpr absl::Duration kStalledAfter = absl::Minutes(1);
constexpr int64_t kStalledSteps = 20;

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

bool GroupReplans::AnyAway(absl::Time now, const std::vector<NodeId>& workers) const {
  return std::any_of(workers.begin(), workers.end(),
                     [&](NodeId worker) { return away_.IsAway(now, worker); });
}

std::vector<NodeId> GroupReplans::Placeable(absl::Time now,
                                            const std::vector<NodeId>& members) const {
  std::vector<NodeId> workers = measurements_.Workers();
  // A worker without a group that is away takes no steps: its program evaluates, or has been told
  // that it is out.
  workers.erase(std::remove_if(workers.begin(), workers.end(),
                               [&](NodeId worker) {
                                 return away_.IsAway(now, worker) &&
                                        !std::binary_search(members.begin(), members.end(), worker);
                               }),
                workers.end());
  return workers;
}

void GroupReplans::Tick(absl::Time now) {
  if (!IsPlanned()) return;
  const std::vector<NodeId> members = AllOf(Present());
  const std::vector<NodeId> workers = Placeable(now, members);
  // A member that drains, or has just gone, leaves its group before others form.
  if (workers.empty() ||
      !std::includes(workers.begin(), workers.end(), members.begin(), members.end())) {
    PutOff(now);
    return;
  }
  std::vector<NodeId> unplaced;
  std::set_difference(workers.begin(), workers.end(), members.begin(), members.end(),
                      std::back_inserter(unplaced));
  PlaceWaiting(now, workers, unplaced);
  if (now < next_) return;
  if (state_.view().tables().empty() || AnyAway(now, workers) || !unplaced.empty()) {
    PutOff(now);
    return;
  }
  if (!measurements_.Unmeasured(now, workers, changed_at_).empty()) {
    PutOff(now);
    GiveUpIfStalled(now, workers);
    return;
  }
  next_ = now + std::max(kEvery, static_cast<int64_t>(workers.size()) * kEveryPerWorker);
  Look(now, workers);
}

void GroupReplans::PutOff(absl::Time now) {
  next_ = std::max(next_, now + kLookAgain);
  wants_other_groups_ = false;
}

void GroupReplans::PlaceWaiting(absl::Time now, const std::vector<NodeId>& workers,
                                const std::vector<NodeId>& unplaced) {
  if (unplaced.empty()) {
    unplaced_since_ = absl::InfiniteFuture();
    return;
  }
  unplaced_since_ = std::min(unplaced_since_, now);
  if (now - unplaced_since_ < kPlaceAfter) return;
  const PlanInputs inputs = Inputs(now, workers, experience_);
  // Other groups may be better now. That is seen when the new workers have been measured.
  Apply(now, PlaceWorkers(inputs.workers, Present(), inputs.options()),
        absl::StrCat(ListNames(NamesOf(state_.view(), unplaced)), " waited for a group"));
  PutOff(now);
}

PlanInputs GroupReplans::Inputs(absl::Time now, const std::vector<NodeId>& workers,
                                GroupExperience& experience) const {
  PlanInputs inputs = measurements_.Inputs(now, workers);
  const std::vector<NodeId> unmeasured = measurements_.Unmeasured(now, workers, changed_at_);
  if (unmeasured.empty()) {
    experience.NoteSamples(measurements_.GroupSamples());
    experience.AddTo(now, inputs.model);
    const GroupList present = Present();
    experience.NoteGroups(now, present.size(), measurements_.SamplesPerSecond(changed_at_),
                          EvaluateGroups(inputs.workers, present, inputs.model).samples_per_second);
  } else {
    inputs.sources.push_back(
        absl::StrCat("waits for measurements of ", ListNames(NamesOf(state_.view(), unmeasured))));
  }
  experience.AddTo(now, inputs.model);
  if (inputs.model.group_samples_per_step > 0) {
    inputs.sources.push_back(
        absl::StrFormat("batches: a group of any size trains %.4g samples per step",
                        inputs.model.group_samples_per_step));
  }
  if (gain_min_ > kReplanGainMin) {
    inputs.sources.push_back(absl::StrFormat(
        "changes: for a gain of %.0f %% or more, because plans brought less than they promised",
        gain_min_ * 100));
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
  const PlanInputs inputs = Inputs(now, workers, experience_);
  const double measured = measurements_.SamplesPerSecond(changed_at_);
  EndTrial(workers, measured);

  const GroupList present = Present();
  ReplanDecision decision = Replan(inputs.workers, present, inputs.options(),
                                   trial_has_ended_ ? kReplanGainMin : gain_min_);
  const bool was_wanted = std::exchange(wants_other_groups_, decision.replan);
  if (decision.replan && !was_wanted) {
    next_ = now + kConfirm;
    return;
  }
  trial_has_ended_ = false;
  if (!decision.replan) return;
  wants_other_groups_ = false;
  absl::Duration longest_step;
  for (const NodeId worker : workers) {
    longest_step = std::max(longest_step, absl::Seconds(measurements_.StepSeconds(worker)));
  }
  // Without a gain it is the contract that asks for another number of groups.
  if (decision.gain > 0) {
    trial_ = Trial{.workers = workers,
                   .before = present,
                   .measured_before = measured,
                   .promised = decision.plan.samples_per_second * decision.plan.fit,
                   .promised_gain = decision.gain,
                   .stalled_at = now + std::max(kStalledAfter, kStalledSteps * longest_step)};
  }
  const std::string why = decision.plan.ExplainChoice();
  Apply(now, decision.plan.Members(),
        why.empty() ? decision.reason : absl::StrCat(decision.reason, "; ", why));
}

std::optional<GroupReplans::Trial> GroupReplans::TakeTrial(const std::vector<NodeId>& workers) {
  std::optional<Trial> trial = std::exchange(trial_, std::nullopt);
  if (trial && trial->workers != workers) trial.reset();
  return trial;
}

void GroupReplans::AskForMore() { gain_min_ = std::min(kGainMinMax, 2 * gain_min_); }

void GroupReplans::EndTrial(const std::vector<NodeId>& workers, double measured) {
  const std::optional<Trial> trial = TakeTrial(workers);
  if (!trial) return;
  trial_has_ended_ = true;
  {
    Transaction change(state_);
    change.Add(PlanMeasured{.groups = Present().size(),
                            .before = trial->measured_before,
                            .measured = measured,
                            .predicted = trial->promised});
    change.Commit();
  }
  const double gain = (1 + trial->promised_gain) * measured / trial->promised - 1;
  if (gain < trial->promised_gain / 2) AskForMore();
}

void GroupReplans::GiveUpIfStalled(absl::Time now, const std::vector<NodeId>& workers) {
  if (!trial_ || now < trial_->stalled_at) return;
  const std::optional<Trial> trial = TakeTrial(workers);
  if (!trial) return;
  AskForMore();
  // As if the planned groups had trained a thousandth of what the groups before them did.
  experience_.NoteGroups(now, Present().size(), trial->measured_before / 1000, trial->promised);
  Apply(now, trial->before, "not all workers take steps in the groups that were planned");
}

void GroupReplans::Apply(absl::Time now, const GroupList& groups, const std::string& reason) {
  Transaction change(state_);
  const Regrouped regrouped = roster_.Regroup(groups, change);
  change.Add(GroupsPlanned{.groups = groups.size(),
                           .moved = regrouped.moved,
                           .placed = regrouped.placed,
                           .reason = reason});
  change.Commit();
  changed_at_ = now;
}

void GroupReplans::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  if (state_.view().groups().empty() || state_.view().tables().empty()) return;
  const std::vector<NodeId> workers = Placeable(now, AllOf(Present()));
  if (workers.empty()) return;
  GroupExperience experience = experience_;
  const PlanInputs inputs = Inputs(now, workers, experience);
  proto::PlanInputs& plan = *reply.mutable_plan();
  SetPlanInputs(inputs, plan);
  for (proto::PlanWorker& worker : *plan.mutable_workers()) {
    worker.set_step_seconds(measurements_.StepSeconds(NodeId(worker.node())));
  }
  plan.set_measured_samples_per_second(measurements_.SamplesPerSecond(changed_at_));
  plan.set_automatic(state_.job().plans_groups);
  if (IsPlanned() && next_ > now) {
    plan.set_next_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(next_ - now)));
  }
}

}  // namespace covey::scheduler
