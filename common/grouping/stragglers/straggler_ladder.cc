// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/straggler_ladder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace covey {
namespace {

using Action = StragglerLadder::Action;
using GroupInForce = StragglerLadder::GroupInForce;
using Member = StragglerLadder::Member;
using Paces = std::vector<const WorkerPace*>;

constexpr absl::Duration kGraceMin = absl::Milliseconds(1);
constexpr absl::Duration kGraceMax = absl::Seconds(10);
// The probation doubles at most this many times.
constexpr uint32_t kProbationDoublingsMax = 6;

struct RungName {
  absl::string_view name;
  StragglerRung rung;
};
constexpr std::array<RungName, 6> kRungNames = {{{"off", StragglerRung::kOff},
                                                 {"observe", StragglerRung::kObserve},
                                                 {"shift", StragglerRung::kShift},
                                                 {"partial", StragglerRung::kPartial},
                                                 {"regroup", StragglerRung::kRegroup},
                                                 {"evict", StragglerRung::kEvict}}};

std::string ShowTime(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g s", seconds);
}

std::string ShowPercent(double part) { return absl::StrFormat("%.0f %%", part * 100); }

const GroupInForce* Find(GroupId id, const std::vector<GroupInForce>& groups) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [id](const GroupInForce& group) { return group.id == id; });
  return found == groups.end() ? nullptr : &*found;
}

// Each member's fraction of the group's samples.
std::vector<double> Fractions(const std::vector<uint32_t>& shares, size_t members) {
  std::vector<double> fractions(members, 1.0 / static_cast<double>(members));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (shares.size() != members || sum <= 0) return fractions;
  for (size_t i = 0; i < members; ++i) fractions[i] = shares[i] / sum;
  return fractions;
}

}  // namespace

absl::StatusOr<StragglerRung> ParseStragglerRung(absl::string_view text) {
  for (const auto& [name, rung] : kRungNames) {
    if (name == text) return rung;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is none of ", absl::StrJoin(kRungNames, ", ", [](std::string* out, auto& rung) {
        absl::StrAppend(out, rung.name);
      })));
}

absl::string_view StragglerRungName(StragglerRung rung) {
  return kRungNames[static_cast<size_t>(rung)].name;
}

std::optional<Action> StragglerLadder::Report(NodeId node, const PaceReport& report,
                                              const GroupInForce* group,
                                              const std::vector<GroupInForce>& groups) {
  if (options_.highest == StragglerRung::kOff) return std::nullopt;
  Judgement& judgement =
      members_.try_emplace(node, Judgement{.pace = WorkerPace(options_.pace)}).first->second;
  judgement.pace.Add(report);
  if (group == nullptr) return std::nullopt;
  GroupMemory& memory = groups_[group->id];
  if (memory.generation != group->generation) {
    memory = {.generation = group->generation};
    for (const Member& member : group->members) {
      const auto known = members_.find(member.node);
      if (known != members_.end()) known->second = {.pace = known->second.pace};
    }
  }
  Judge(*group, judgement);
  ++memory.reports;
  const auto member = std::find_if(group->members.begin(), group->members.end(),
                                   [node](const Member& m) { return m.node == node; });
  std::optional<Action> action = Decide(*group, *member, groups, memory);
  if (action && action->kind != Action::Kind::kNotice) {
    memory = {.generation = group->generation};
    if (action->kind == Action::Kind::kEvict) ++probation_[action->member].evictions;
  }
  return action;
}

void StragglerLadder::Judge(const GroupInForce& group, Judgement& member) {
  if (!member.pace.known()) return;
  const Paces paces = KnownPaces(group);
  if (paces.size() < 2) return;
  member.slowness = member.pace.seconds_per_sample() / MedianPace(paces);
  member.slow = member.slowness > options_.slow_ratio ? member.slow + 1 : 0;
  member.recovered = member.slowness < options_.recovered_ratio ? member.recovered + 1 : 0;
  if (member.slow >= options_.slow_reports) member.straggler = true;
  if (member.recovered >= options_.recovered_reports) member.straggler = false;
}

std::optional<Action> StragglerLadder::Decide(const GroupInForce& group, const Member& reporter,
                                              const std::vector<GroupInForce>& groups,
                                              GroupMemory& memory) {
  if (options_.highest == StragglerRung::kObserve) return Notice(reporter);
  const Paces paces = KnownPaces(group);
  if (paces.size() < std::max<size_t>(group.members.size(), 2)) return std::nullopt;
  const GroupEfficiency efficiency = EfficiencyOf(paces);
  const Member& slowest = group.members[efficiency.slowest];
  if (reporter.node == slowest.node) {
    const bool poor =
        efficiency.part < options_.efficiency_min && members_.at(slowest.node).straggler;
    memory.poor = poor ? memory.poor + 1 : 0;
  }
  memory.good = efficiency.part >= options_.efficiency_good ? memory.good + 1 : 0;
  if (memory.reports < options_.settle_reports * group.members.size()) return std::nullopt;

  if (auto action = StopWaiting(group)) return action;
  if (auto action = Shift(group)) return action;
  if (memory.poor >= options_.slow_reports) {
    if (auto action = Remove(group, efficiency, groups)) return action;
  }
  if (auto action = GoHome(group, reporter, groups)) return action;
  return WaitAgain(group, memory);
}

std::optional<Action> StragglerLadder::Notice(const Member& member) {
  Judgement& judgement = members_.at(member.node);
  const bool remarkable = judgement.straggler || HasHiccups(judgement.pace);
  if (remarkable == judgement.noticed) return std::nullopt;
  // As on the other rungs, this one is left only when its cause has gone completely.
  if (!remarkable && judgement.pace.hiccups() > 0) return std::nullopt;
  judgement.noticed = remarkable;
  return Action{.kind = Action::Kind::kNotice,
                .member = member.node,
                .evidence = absl::StrCat(Describe(member), remarkable ? "" : ": steady again")};
}

std::optional<Action> StragglerLadder::StopWaiting(const GroupInForce& group) const {
  if (options_.highest < StragglerRung::kPartial) return std::nullopt;
  std::vector<std::string> late;
  for (const Member& member : group.members) {
    const WorkerPace& pace = members_.at(member.node).pace;
    if (!HasHiccups(pace)) continue;
    late.push_back(absl::StrCat(member.name, " was late in ", pace.hiccups(), " of ", pace.window(),
                                " reports, more than ", options_.pace.hiccup_ratio,
                                "x its usual time"));
  }
  if (late.empty()) return std::nullopt;
  Action action = PartialReduce(group, late.size(), absl::StrJoin(late, "; "));
  // A group that waits for fewer members needs no further change.
  if (group.minimum_members != 0 && group.minimum_members <= action.minimum_members) {
    return std::nullopt;
  }
  return action;
}

std::optional<Action> StragglerLadder::WaitAgain(const GroupInForce& group,
                                                 const GroupMemory& memory) const {
  if (options_.highest < StragglerRung::kPartial || group.minimum_members == 0 ||
      memory.good < options_.recovered_reports * group.members.size()) {
    return std::nullopt;
  }
  for (const Member& member : group.members) {
    const WorkerPace& pace = members_.at(member.node).pace;
    // A worker that computes in time but steps aside is late for another reason.
    if (pace.hiccups() > 0 || pace.window() < options_.hiccup_reports_min ||
        pace.aside() > options_.hiccups_max) {
      return std::nullopt;
    }
  }
  return Action{.kind = Action::Kind::kPartialReduce,
                .group = group.id,
                .evidence = "nobody was late for a whole window of reports"};
}

std::optional<Action> StragglerLadder::Shift(const GroupInForce& group) const {
  Action action{.kind = Action::Kind::kShiftSamples, .group = group.id};
  bool straggler = false;
  bool all_recovered = true;
  for (const Member& member : group.members) {
    const Judgement& judgement = members_.at(member.node);
    straggler = straggler || judgement.straggler;
    all_recovered = all_recovered && judgement.recovered >= options_.recovered_reports;
  }
  if (group.shares.empty() && !straggler) return std::nullopt;
  if (!group.shares.empty() && all_recovered) {
    action.evidence =
        absl::StrCat("every member is within ", options_.recovered_ratio, "x of the median again");
    return action;
  }

  const Paces paces = KnownPaces(group);
  action.shares = SharesBySpeed(paces, options_.share_min);
  const std::vector<double> wanted = Fractions(action.shares, paces.size());
  const std::vector<double> current = Fractions(group.shares, paces.size());
  for (size_t i = 0; i < paces.size(); ++i) {
    // The others' shares follow from those of present and past stragglers.
    const bool reduced = current[i] * static_cast<double>(paces.size()) * options_.slow_ratio < 1;
    if (!members_.at(group.members[i].node).straggler && !reduced) continue;
    const double change = std::abs(wanted[i] / current[i] - 1);
    const double noise = options_.share_errors * paces[i]->error();
    if (change <= std::max(options_.share_change_min, noise)) continue;
    action.evidence =
        absl::StrCat(Describe(group.members[i]), "; its share is ", ShowPercent(current[i]),
                     " of the group's samples, by speed ", ShowPercent(wanted[i]));
    return action;
  }
  return std::nullopt;
}

std::optional<Action> StragglerLadder::Remove(const GroupInForce& group,
                                              const GroupEfficiency& efficiency,
                                              const std::vector<GroupInForce>& groups) const {
  const Member& slowest = group.members[efficiency.slowest];
  const std::string evidence =
      absl::StrCat("in spite of its share the group waits for ", slowest.name, " (",
                   ShowTime(efficiency.slowest_step_seconds), " per step) and makes ",
                   ShowPercent(efficiency.part), " of the summed speed of its members, ",
                   absl::StrFormat("%.1fx", efficiency.gain_without_slowest), " without it");
  const bool may_shrink = group.members.size() > options_.group_members_min &&
                          efficiency.gain_without_slowest >= options_.gain_min;

  if (may_shrink && options_.highest >= StragglerRung::kRegroup) {
    const GroupInForce* best = nullptr;
    double best_step = 0;
    for (const GroupInForce& other : groups) {
      const Paces paces = KnownPaces(other);
      if (other.id == group.id || paces.empty() || paces.size() < other.members.size()) continue;
      const double step = EfficiencyOf(paces).slowest_step_seconds;
      if (efficiency.slowest_step_seconds > options_.fit_max * step) continue;
      if (best == nullptr || step < best_step) {
        best = &other;
        best_step = step;
      }
    }
    if (best != nullptr) {
      return Action{.kind = Action::Kind::kRegroup,
                    .group = group.id,
                    .member = slowest.node,
                    .to = best->id,
                    .evidence = absl::StrCat(evidence, "; group ", best->id.value(), " takes ",
                                             ShowTime(best_step), " per step")};
    }
  }
  if (may_shrink && options_.highest >= StragglerRung::kEvict) {
    return Action{.kind = Action::Kind::kEvict,
                  .group = group.id,
                  .member = slowest.node,
                  .evidence = absl::StrCat(evidence, "; no other group is as slow")};
  }
  if (options_.highest >= StragglerRung::kPartial && group.minimum_members == 0) {
    return PartialReduce(group, 1, evidence);
  }
  return std::nullopt;
}

std::optional<Action> StragglerLadder::GoHome(const GroupInForce& group, const Member& member,
                                              const std::vector<GroupInForce>& groups) {
  Judgement& judgement = members_.at(member.node);
  const GroupInForce* home = Find(member.home, groups);
  if (options_.highest < StragglerRung::kRegroup || home == nullptr || home->id == group.id ||
      group.members.size() <= options_.group_members_min) {
    return std::nullopt;
  }
  const Paces paces = KnownPaces(*home);
  const double pace = judgement.pace.seconds_per_sample();
  const bool fits = !paces.empty() && paces.size() == home->members.size() &&
                    pace < options_.recovered_ratio * MedianPace(paces);
  judgement.fits_home = fits ? judgement.fits_home + 1 : 0;
  if (judgement.fits_home < options_.recovered_reports) return std::nullopt;
  return Action{.kind = Action::Kind::kRegroup,
                .group = group.id,
                .member = member.node,
                .to = home->id,
                .evidence = absl::StrCat(member.name, " takes ", ShowTime(pace),
                                         " per sample, as its old group does (",
                                         ShowTime(MedianPace(paces)), ")")};
}

std::vector<Action> StragglerLadder::EndProbation(absl::Time now,
                                                  const std::vector<GroupInForce>& groups,
                                                  const std::vector<Member>& evicted) {
  std::vector<Action> actions;
  for (const Member& member : evicted) {
    Probation& probation = probation_[member.node];
    const uint32_t doublings =
        std::min(std::max(probation.evictions, 1u) - 1, kProbationDoublingsMax);
    const absl::Duration term = options_.probation * (1 << doublings);
    if (probation.until == absl::InfinitePast()) probation.until = now + term;
    if (now < probation.until) continue;
    probation.until = absl::InfinitePast();
    members_.erase(member.node);  // its pace is outdated
    actions.push_back({.kind = Action::Kind::kRegroup,
                       .member = member.node,
                       .to = Find(member.home, groups) != nullptr ? member.home : GroupId(),
                       .evidence = absl::StrCat(member.name, " has been out for ",
                                                absl::FormatDuration(term), " and may try again")});
  }
  return actions;
}

void StragglerLadder::Forget(NodeId member) {
  members_.erase(member);
  probation_.erase(member);
}

std::optional<StragglerLadder::Standing> StragglerLadder::StandingOf(NodeId member) const {
  const auto found = members_.find(member);
  if (found == members_.end()) return std::nullopt;
  const Judgement& judgement = found->second;
  if (!judgement.pace.known()) return Standing{};
  return Standing{.state = judgement.straggler          ? State::kStraggler
                           : HasHiccups(judgement.pace) ? State::kHiccups
                                                        : State::kSteady,
                  .seconds_per_sample = judgement.pace.seconds_per_sample(),
                  .slowness = judgement.slowness};
}

bool StragglerLadder::HasHiccups(const WorkerPace& pace) const {
  return pace.window() >= options_.hiccup_reports_min &&
         static_cast<double>(pace.hiccups()) >
             options_.hiccups_max * static_cast<double>(pace.window());
}

std::vector<const WorkerPace*> StragglerLadder::KnownPaces(const GroupInForce& group) const {
  Paces paces;
  for (const Member& member : group.members) {
    const auto found = members_.find(member.node);
    if (found != members_.end() && found->second.pace.known()) paces.push_back(&found->second.pace);
  }
  return paces;
}

Action StragglerLadder::PartialReduce(const GroupInForce& group, size_t late,
                                      std::string evidence) const {
  const size_t members = group.members.size();
  const size_t half = (members + 1) / 2;
  const size_t automatic = std::max(members - std::min(members, late), half);
  const size_t wanted = options_.partial_minimum == 0 ? automatic : options_.partial_minimum;
  const absl::Duration automatic_grace =
      std::clamp(absl::Seconds(MedianStepSeconds(KnownPaces(group)) / 2), kGraceMin, kGraceMax);
  return {.kind = Action::Kind::kPartialReduce,
          .group = group.id,
          .minimum_members = static_cast<uint32_t>(std::clamp<size_t>(wanted, 1, members - 1)),
          .grace = options_.partial_grace > absl::ZeroDuration() ? options_.partial_grace
                                                                 : automatic_grace,
          .evidence = std::move(evidence)};
}

std::string StragglerLadder::Describe(const Member& member) const {
  const Judgement& judgement = members_.at(member.node);
  return absl::StrFormat("%s takes %s per sample, %.2fx its group's median", member.name,
                         ShowTime(judgement.pace.seconds_per_sample()), judgement.slowness);
}

}  // namespace covey
