// SPDX-License-Identifier: Apache-2.0
#include "common/contract/update_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

// Whether every live group that is waited for at `step` is at it or beyond. Both lists are sorted.
template <typename ReachesStep>
bool AllReach(Step step, const GroupCensus& groups, ReachesStep reaches) {
  return std::all_of(groups.live.begin(), groups.live.end(), [&](const LiveGroup& group) {
    return group.first_step > step || reaches(group.id);
  });
}

size_t WaitedFor(Step step, const GroupCensus& groups) {
  return static_cast<size_t>(
      std::count_if(groups.live.begin(), groups.live.end(),
                    [step](const LiveGroup& group) { return group.first_step <= step; }));
}

Step StepOf(const absl::btree_map<GroupId, Step>& steps, GroupId group) {
  const auto found = steps.find(group);
  return found == steps.end() ? Step() : found->second;
}

}  // namespace

Step UpdateGate::LastTaken(GroupId group) const { return StepOf(taken_, group); }

bool UpdateGate::Holds(GroupId group) const {
  const auto is_of_group = [group](const HeldPush& held) { return held.push.group == group; };
  return StepsHeld(group) > 0 || std::any_of(arrivals_.begin(), arrivals_.end(), is_of_group) ||
         std::any_of(beyond_.begin(), beyond_.end(), is_of_group);
}

Step UpdateGate::last_received(GroupId group) const { return StepOf(received_, group); }

bool UpdateGate::IsBeyond(GroupId group, Step step) const {
  const auto last = held_beyond_.find(group);
  return last != held_beyond_.end() && step > last->second;
}

bool UpdateGate::HoldsUpTo() const {
  return !overdue_.empty() || !arrivals_.empty() || FirstLate() != late_.end() ||
         std::any_of(beyond_.begin(), beyond_.end(),
                     [this](const HeldPush& held) { return !IsBeyond(held); }) ||
         (!steps_.empty() && !FirstStepIsBeyond());
}

UpdateGate::Late::const_iterator UpdateGate::FirstLate() const {
  return std::find_if(late_.begin(), late_.end(),
                      [this](const auto& late) { return !IsBeyond(late.second); });
}

bool UpdateGate::FirstStepIsBeyond() const {
  if (steps_.empty() || held_beyond_.empty()) return false;
  const auto& [step, pushes] = *steps_.begin();
  if (Planted(PlantedBug::kBeyondByOwnGroup)) return IsBeyond(pushes.begin()->second);
  // By any group's step, because all are equal: the first push may be of a group that has ended.
  return step > held_beyond_.begin()->second;
}

void UpdateGate::HurryHeld() {
  FlushPartialBuffer();
  if (contract_.kind == Contract::Kind::kLocal && FirstLate() != late_.end()) {
    overdue_.insert(overdue_.begin(), CutLate());
  }
}

bool UpdateGate::IsBeyond(const HeldPush& held) const {
  return IsBeyond(held.push.group, held.push.step);
}

void UpdateGate::TakeUpReleased(size_t arrivals_max) {
  for (auto held = beyond_.begin(); held != beyond_.end() && arrivals_.size() < arrivals_max;) {
    if (IsBeyond(*held)) {
      ++held;
      continue;
    }
    arrivals_.push_back(*held);
    held = beyond_.erase(held);
  }
}

size_t UpdateGate::StepsHeld(GroupId group) const {
  size_t held = 0;
  for (const auto& [step, pushes] : steps_) held += pushes.contains(group);
  for (auto late = late_.lower_bound({group, Step()});
       late != late_.end() && late->first.first == group; ++late) {
    ++held;
  }
  return held;
}

absl::Status UpdateGate::Admit(GroupId group, Step step) const {
  if (!ByStep()) return absl::OkStatus();
  if (group == GroupId()) {
    return absl::InvalidArgumentError(
        absl::StrCat(contract_.kind == Contract::Kind::kBsp
                         ? "a bsp table takes pushes of groups only; push as a member of a group"
                         : "a local table takes pushes of groups only; push as a member of a group "
                           "(rows of a sparse table by LocalRows)",
                     ", or create the table with another contract"));
  }
  const auto same_step = steps_.find(step);
  if (late_.contains({group, step}) ||
      (same_step != steps_.end() && same_step->second.contains(group))) {
    return absl::AbortedError(absl::StrCat("step ", step.value(), " of group ", group.value(),
                                           " was pushed by an earlier generation of the group"));
  }
  if (step > switched_at_ && step <= LastTaken(group)) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step.value(), " of group ", group.value(), " is over: step ",
                     LastTaken(group).value(), " of the group has been applied; wait for one step ",
                     "before the next"));
  }
  // All groups wait for the next step: its push is admitted even if later ones came first.
  const size_t held = StepsHeld(group);
  if (held >= kHeldStepsPerGroupMax && step != last_step_.Next()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("group ", group.value(), " is ", held,
                     " steps ahead of the slowest group; pull or wait before pushing on"));
  }
  return absl::OkStatus();
}

uint64_t UpdateGate::Add(const GatePush& push) {
  const HeldPush held{.number = next_number_++, .push = push};
  samples_held_ += push.samples;
  NoteReceived(push.group, push.step);
  newest_view_ = std::max(newest_view_, push.view);
  if (!ByStep()) {
    (IsBeyond(push.group, push.step) ? beyond_ : arrivals_).push_back(held);
  } else if (push.step <= last_step_) {
    late_.emplace(std::pair(push.group, push.step), held);
  } else {
    steps_[push.step].emplace(push.group, held);
  }
  return held.number;
}

void UpdateGate::Pass(GroupId group, Step step) {
  NoteReceived(group, step);
  NoteTaken(group, step);
}

void UpdateGate::Resume(GroupId group, Step step) {
  Pass(group, step);
  switched_at_ = std::max(switched_at_, step);
}

void UpdateGate::NoteReceived(GroupId group, Step step) {
  if (group == GroupId()) return;
  Step& received = received_[group];
  received = std::max(received, step);
}

void UpdateGate::NoteTaken(GroupId group, Step step) {
  if (group == GroupId()) return;
  Step& taken = taken_[group];
  taken = std::max(taken, step);
  last_step_ = std::max(last_step_, step);
}

void UpdateGate::Take(const HeldPush& held, Update& update) {
  update.pushes.push_back(held.number);
  update.samples += held.push.samples;
  samples_held_ -= held.push.samples;
  NoteTaken(held.push.group, held.push.step);
}

UpdateGate::Update UpdateGate::CutFirstStep(bool with_late) {
  Update update;
  const auto step = steps_.begin();
  if (with_late) {
    for (const auto& [group, held] : step->second) {
      late_.emplace(std::pair(group, step->first), held);
    }
    update = CutLate();
  } else {
    for (const auto& [group, held] : step->second) Take(held, update);
  }
  steps_.erase(step);
  return update;
}

UpdateGate::Update UpdateGate::CutFirstLate() {
  Update update;
  const auto late = FirstLate();
  Take(late->second, update);
  late_.erase(late);
  return update;
}

UpdateGate::Update UpdateGate::CutLate() {
  Update update;
  for (auto late = late_.begin(); late != late_.end();) {
    if (IsBeyond(late->second)) {
      ++late;
      continue;
    }
    Take(late->second, update);
    late = late_.erase(late);
  }
  return update;
}

UpdateGate::Update UpdateGate::CutArrivals() {
  Update update;
  for (const HeldPush& held : arrivals_) Take(held, update);
  arrivals_.clear();
  return update;
}

void UpdateGate::SwitchTo(const Contract& contract) {
  if (contract.kind != contract_.kind) {
    Release();
    std::vector<Update> held;
    const bool rounds = contract_.kind == Contract::Kind::kLocal;
    const bool applies_on_arrival = contract_.kind != Contract::Kind::kBuffered;
    while (applies_on_arrival && !beyond_.empty()) {
      TakeUpReleased(1);
      held.push_back(CutArrivals());
    }
    TakeUpReleased(beyond_.size() + arrivals_.size());
    while (!rounds && !late_.empty()) held.push_back(CutFirstLate());
    while (!steps_.empty()) held.push_back(CutFirstStep(/*with_late=*/rounds));
    if (!late_.empty()) held.push_back(CutLate());
    if (!arrivals_.empty()) held.push_back(CutArrivals());
    overdue_.insert(overdue_.begin(), held.rbegin(), held.rend());
    switched_at_ = last_step_;
    next_due_ = absl::InfiniteFuture();
  }
  contract_ = contract;
}

void UpdateGate::FlushPartialBuffer() {
  if (!arrivals_.empty()) overdue_.insert(overdue_.begin(), CutArrivals());
}

std::optional<UpdateGate::Update> UpdateGate::TakeDue(absl::Time now, const GroupCensus& groups) {
  if (!overdue_.empty()) {
    Update update = std::move(overdue_.back());
    overdue_.pop_back();
    return update;
  }
  if (ByStep() && groups.epoch < newest_view_) {
    next_due_ = absl::InfiniteFuture();
    return std::nullopt;
  }
  switch (contract_.kind) {
    case Contract::Kind::kBsp:
      return TakeStep(groups);
    case Contract::Kind::kLocal:
      return TakeRound(now, groups);
    case Contract::Kind::kSsp:
    case Contract::Kind::kAsync:
    case Contract::Kind::kBuffered:
      return TakeArrivals(groups);
  }
  return std::nullopt;
}

std::optional<UpdateGate::Update> UpdateGate::TakeStep(const GroupCensus& groups) {
  if (FirstLate() != late_.end()) return CutFirstLate();
  if (steps_.empty() || FirstStepIsBeyond()) return std::nullopt;
  const Step step = steps_.begin()->first;
  const HeldStep& pushes = steps_.begin()->second;
  if (pushes.size() < WaitedFor(step, groups) ||
      !AllReach(step, groups, [&](GroupId group) { return pushes.contains(group); })) {
    return std::nullopt;
  }
  return CutFirstStep(/*with_late=*/false);
}

std::optional<UpdateGate::Update> UpdateGate::TakeRound(absl::Time now, const GroupCensus& groups) {
  next_due_ = absl::InfiniteFuture();
  const bool is_empty = steps_.empty() && FirstLate() == late_.end();
  if (is_empty || FirstStepIsBeyond()) return std::nullopt;
  const Step round = steps_.empty() ? last_step_.Next() : steps_.begin()->first;
  const bool complete =
      AllReach(round, groups, [&](GroupId group) { return HasPart(group, round); });
  if (!complete && !QuorumWaitIsOver(now, round) && !LateIsFull() && !LateWaitIsOver(now)) {
    return std::nullopt;
  }
  quorum_round_ = Step();
  late_since_ = absl::InfiniteFuture();
  return steps_.empty() ? CutLate() : CutFirstStep(/*with_late=*/true);
}

// A change of a finished round is the group's part of the next one.
bool UpdateGate::HasPart(GroupId group, Step round) const {
  return StepOf(received_, group) >= round || StepsHeld(group) > 0;
}

// No round can begin, perhaps because its groups wait for the group that is behind; that group must
// be able to go on.
bool UpdateGate::LateIsFull() const {
  return steps_.empty() && std::any_of(late_.begin(), late_.end(), [this](const auto& late) {
           return StepsHeld(late.first.first) >= kHeldStepsPerGroupMax;
         });
}

// With a quorum, the shards of a table may have put different groups' changes together. Where
// every group is behind the last round, one may wait here for the change of another, which waits
// elsewhere for a change of the first.
bool UpdateGate::LateWaitIsOver(absl::Time now) {
  if (contract_.quorum == 0 || !steps_.empty()) {
    late_since_ = absl::InfiniteFuture();
    return false;
  }
  late_since_ = std::min(late_since_, now);
  const absl::Time over = late_since_ + std::max(contract_.grace, kLateWaitMin);
  next_due_ = std::min(next_due_, over);
  return now >= over;
}

bool UpdateGate::QuorumWaitIsOver(absl::Time now, Step round) {
  if (contract_.quorum == 0) return false;
  const auto arrived = std::count_if(received_.begin(), received_.end(), [&](const auto& group) {
    return HasPart(group.first, round);
  });
  if (static_cast<uint64_t>(arrived) < contract_.quorum) return false;
  if (quorum_round_ != round) {
    quorum_round_ = round;
    quorum_since_ = now;
  }
  if (now >= quorum_since_ + contract_.grace) return true;
  next_due_ = quorum_since_ + contract_.grace;
  return false;
}

std::optional<UpdateGate::Update> UpdateGate::TakeArrivals(const GroupCensus& groups) {
  const size_t wanted = ArrivalsPerUpdate(groups);
  TakeUpReleased(wanted);
  if (arrivals_.size() < wanted) return std::nullopt;
  return CutArrivals();
}

size_t UpdateGate::ArrivalsPerUpdate(const GroupCensus& groups) const {
  if (contract_.kind != Contract::Kind::kBuffered) return 1;
  const size_t live = groups.live.size();
  if (contract_.buffer == 0) return std::max<size_t>(1, live);
  if (groups.initial == 0) return contract_.buffer;
  // As many as a buffer holds of each of the first groups. Rounded up, so that k shrinks only when
  // fewer live; groups beyond them do not make it grow.
  const size_t of_live = (contract_.buffer * live + groups.initial - 1) / groups.initial;
  return std::clamp<size_t>(of_live, 1, contract_.buffer);
}

}  // namespace covey
