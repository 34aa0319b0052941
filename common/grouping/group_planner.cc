// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/group_planner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/plural.h"
#include "common/grouping/local_search.h"
#include "common/grouping/partition_candidates.h"

namespace covey {
namespace {

// Up to this many workers every start is improved, otherwise only the best ones.
constexpr size_t kFewWorkers = 16;
constexpr size_t kImprovedStarts = 4;
constexpr size_t kRandomStarts = 12;
constexpr size_t kEffort = 2'000'000;
// Every number of groups up to this one is tried, beyond it about every fifth power of three.
constexpr size_t kCountsTried = 8;
constexpr double kCountRatio = 1.25;
constexpr size_t kGroupsExplained = 4;

struct Start {
  double value = 0;
  std::vector<GroupMembers> groups;
};

size_t DivideUp(size_t a, size_t b) { return (a + b - 1) / b; }

// Numbers of groups worth trying, in growing order.
std::vector<size_t> Counts(const ThroughputModel& throughput, const GroupPlanOptions& options) {
  const size_t workers = throughput.size();
  if (options.groups > 0) return {std::min(options.groups, workers)};
  std::set<size_t> counts;
  const size_t all = workers <= kFewWorkers ? workers : kCountsTried;
  for (size_t count = 1; count <= all; ++count) counts.insert(count);
  for (double count = kCountsTried; count <= static_cast<double>(workers); count *= kCountRatio) {
    counts.insert(static_cast<size_t>(count));
  }
  // As many groups as there are zones, racks or hosts, and two or four in each.
  for (const Level level : {Level::kZone, Level::kRack, Level::kHost}) {
    const size_t domains = throughput.domain(static_cast<uint32_t>(workers - 1), level) + 1;
    for (const size_t times : {1, 2, 4}) counts.insert(std::min(workers, domains * times));
  }
  const size_t least = DivideUp(workers, options.members_max);
  counts.erase(counts.begin(), counts.lower_bound(least));
  counts.insert(least);
  return {counts.begin(), counts.end()};
}

void AddStart(const ThroughputModel& throughput, const GroupPlanOptions& options,
              std::vector<GroupMembers> groups, std::vector<Start>& starts) {
  if (groups.empty()) return;
  for (const GroupMembers& group : groups) {
    if (group.size() > options.members_max) return;
  }
  starts.push_back({ValueOf(throughput, groups), std::move(groups)});
}

bool EqualSpeeds(const ThroughputModel& throughput) {
  for (uint32_t worker = 1; worker < throughput.size(); ++worker) {
    if (throughput.seconds(worker) != throughput.seconds(0)) return false;
  }
  return true;
}

std::vector<Start> Starts(const ThroughputModel& throughput, const GroupPlanOptions& options) {
  const bool free_sizes = options.sizes == GroupPlanOptions::Sizes::kFree;
  const size_t classes = CountSpeedClasses(throughput);
  std::vector<Start> starts;
  for (const size_t count : Counts(throughput, options)) {
    AddStart(throughput, options, CutGroups(throughput, GroupOrder::kTopology, count), starts);
    if (free_sizes) AddStart(throughput, options, CutClasses(throughput, count), starts);
    if (free_sizes && options.groups == 0 && classes > 1) {
      // Plans without the slow workers, which get groups of their own.
      AddStart(throughput, options,
               CutClasses(throughput, std::min(throughput.size(), count + classes - 1)), starts);
    }
    if (!EqualSpeeds(throughput)) {
      AddStart(throughput, options, CutGroups(throughput, GroupOrder::kRackAndSpeed, count),
               starts);
      AddStart(throughput, options, CutGroups(throughput, GroupOrder::kSpeed, count), starts);
    }
    for (uint64_t seed = 1; throughput.size() <= kFewWorkers && seed <= kRandomStarts; ++seed) {
      AddStart(throughput, options, CutAtRandom(throughput, seed, count), starts);
    }
  }
  // Of equal plans the one along the topology with the fewest groups wins.
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Start& a, const Start& b) { return a.value > b.value; });
  return starts;
}

struct Found {
  std::vector<GroupMembers> best;
  std::map<size_t, double> values;  // the highest, by number of groups
};

Found Search(const ThroughputModel& throughput, const GroupPlanOptions& options) {
  std::vector<Start> starts = Starts(throughput, options);
  COVEY_CHECK(!starts.empty());
  Found found;
  for (const Start& start : starts) {
    double& value = found.values[start.groups.size()];
    value = std::max(value, start.value);
  }
  if (throughput.size() > kFewWorkers && starts.size() > kImprovedStarts) {
    starts.resize(kImprovedStarts);
  }
  Start best;
  for (Start& start : starts) {
    ImproveGroups(throughput,
                  {.keep_sizes = options.sizes == GroupPlanOptions::Sizes::kEqual,
                   .members_max = options.members_max,
                   .effort = kEffort / starts.size()},
                  start.groups);
    start.value = ValueOf(throughput, start.groups);
    double& value = found.values[start.groups.size()];
    value = std::max(value, start.value);
    if (best.groups.empty() || start.value > best.value) best = std::move(start);
  }
  found.best = std::move(best.groups);
  return found;
}

GroupPlan MakePlan(const ThroughputModel& throughput, const std::vector<GroupMembers>& groups) {
  GroupPlan plan;
  std::vector<std::pair<uint32_t, PlannedGroup>> by_rank;
  double slowest = 0;
  for (const GroupMembers& members : groups) {
    uint32_t lowest = throughput.worker(members.front()).rank;
    PlannedGroup group{.members = {}, .terms = throughput.Rate(members)};
    group.step_seconds = throughput.StepSeconds(group.terms, groups.size());
    slowest = std::max(slowest, group.step_seconds);
    for (const uint32_t member : members) {
      group.members.push_back(throughput.worker(member).node);
      lowest = std::min(lowest, throughput.worker(member).rank);
    }
    by_rank.emplace_back(lowest, std::move(group));
  }
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [rank, group] : by_rank) {
    group.samples_per_second = throughput.SamplesPerSecond(group.terms, groups.size(), slowest);
    plan.samples_per_second += group.samples_per_second;
    plan.groups.push_back(std::move(group));
  }
  if (groups.empty()) return plan;
  plan.statistical_factor = throughput.StatisticalFactor(groups.size());
  plan.fit = throughput.Fit(groups.size());
  return plan;
}

// Groups by the throughput's numbers, without nodes that it does not know.
std::vector<GroupMembers> Known(const ThroughputModel& throughput,
                                const std::vector<std::vector<NodeId>>& groups) {
  std::map<NodeId, uint32_t> numbers;
  for (uint32_t worker = 0; worker < throughput.size(); ++worker) {
    numbers.emplace(throughput.worker(worker).node, worker);
  }
  std::vector<GroupMembers> known;
  for (const std::vector<NodeId>& group : groups) {
    GroupMembers members;
    for (const NodeId node : group) {
      if (const auto at = numbers.find(node); at != numbers.end()) members.push_back(at->second);
    }
    std::sort(members.begin(), members.end());
    if (!members.empty()) known.push_back(std::move(members));
  }
  return known;
}

// Adds each worker that is in no group where the value grows most.
void PlaceNewcomers(const ThroughputModel& throughput, size_t members_max,
                    std::vector<GroupMembers>& groups) {
  std::vector<bool> placed(throughput.size(), false);
  for (const GroupMembers& group : groups) {
    for (const uint32_t member : group) placed[member] = true;
  }
  for (uint32_t worker = 0; worker < throughput.size(); ++worker) {
    if (placed[worker]) continue;
    size_t best = groups.size();
    double best_gain = 0;
    GroupMembers best_members;
    for (size_t group = 0; group < groups.size(); ++group) {
      if (groups[group].size() >= members_max) continue;
      GroupMembers members = groups[group];
      members.insert(std::lower_bound(members.begin(), members.end(), worker), worker);
      const double gain =
          throughput.SamplesPerSecond(throughput.Rate(members), groups.size()) -
          throughput.SamplesPerSecond(throughput.Rate(groups[group]), groups.size());
      if (best < groups.size() && gain <= best_gain) continue;
      best = group;
      best_gain = gain;
      best_members = std::move(members);
    }
    if (best == groups.size()) {
      groups.push_back({worker});
    } else {
      groups[best] = std::move(best_members);
    }
  }
}

}  // namespace

std::vector<std::vector<NodeId>> GroupPlan::Members() const {
  std::vector<std::vector<NodeId>> members;
  for (const PlannedGroup& group : groups) members.push_back(group.members);
  return members;
}

std::string GroupPlan::Explain() const {
  std::string text = absl::StrFormat(
      "%s, %.4g samples/s%s x %.3g", Plural(groups.size(), "group"), samples_per_second * fit,
      fit == 1 ? "" : absl::StrFormat(" (%.2g of the model's)", fit), statistical_factor);
  for (size_t i = 0; i < std::min(groups.size(), kGroupsExplained); ++i) {
    const PlannedGroup& group = groups[i];
    absl::StrAppendFormat(&text, "; %s %.4g/s (compute %.4g ms, communication %.4g ms)",
                          Plural(group.members.size(), "worker"), group.samples_per_second,
                          group.terms.compute_seconds * 1e3,
                          group.terms.communication_seconds * 1e3);
  }
  if (groups.size() > kGroupsExplained) {
    absl::StrAppend(&text, "; and ", groups.size() - kGroupsExplained, " more");
  }
  return text;
}

std::string GroupPlan::ExplainChoice() const {
  const PlanCandidate* second = nullptr;
  for (const PlanCandidate& candidate : candidates) {
    if (candidate.groups == groups.size()) continue;
    if (second == nullptr || candidate.value() > second->value()) second = &candidate;
  }
  if (second == nullptr) return "";
  return absl::StrFormat(
      "of the numbers from %d to %d, %d promises the most progress, and %d promises %.1f %% less",
      candidates.front().groups, candidates.back().groups, groups.size(), second->groups,
      (1 - second->value() / value()) * 100);
}

GroupPlan PlanGroups(std::vector<PlannedWorker> workers, const GroupPlanOptions& options) {
  COVEY_CHECK(!workers.empty() && options.members_max > 0);
  COVEY_CHECK(options.groups == 0 ||
              DivideUp(workers.size(), std::min(options.groups, workers.size())) <=
                  options.members_max);
  const ThroughputModel throughput(std::move(workers), options.model);
  const Found found = Search(throughput, options);
  GroupPlan plan = MakePlan(throughput, found.best);
  for (const auto& [groups, value] : found.values) {
    PlanCandidate candidate{.groups = groups,
                            .statistical_factor = throughput.StatisticalFactor(groups),
                            .fit = throughput.Fit(groups)};
    candidate.samples_per_second = value / (candidate.statistical_factor * candidate.fit);
    plan.candidates.push_back(candidate);
  }
  return plan;
}

std::vector<std::vector<NodeId>> PlanGroups(std::vector<PlannedWorker> workers, size_t groups) {
  if (workers.empty() || groups == 0) return {};
  const size_t everybody = workers.size();
  return PlanGroups(std::move(workers), {.groups = groups,
                                         .sizes = GroupPlanOptions::Sizes::kEqual,
                                         .members_max = everybody,
                                         .model = {}})
      .Members();
}

GroupPlan EvaluateGroups(std::vector<PlannedWorker> workers,
                         const std::vector<std::vector<NodeId>>& groups,
                         const ThroughputParameters& model) {
  const ThroughputModel throughput(std::move(workers), model);
  return MakePlan(throughput, Known(throughput, groups));
}

std::vector<std::vector<NodeId>> PlaceWorkers(const std::vector<PlannedWorker>& workers,
                                              const std::vector<std::vector<NodeId>>& present,
                                              const GroupPlanOptions& options) {
  const ThroughputModel throughput(workers, options.model);
  std::vector<GroupMembers> groups = Known(throughput, present);
  if (groups.empty()) return PlanGroups(workers, DivideUp(workers.size(), options.members_max));
  PlaceNewcomers(throughput, options.members_max, groups);
  return MakePlan(throughput, groups).Members();
}

ReplanDecision Replan(const std::vector<PlannedWorker>& workers,
                      const std::vector<std::vector<NodeId>>& present,
                      const GroupPlanOptions& options, double gain_min) {
  const ThroughputModel throughput(workers, options.model);
  std::vector<GroupMembers> kept = Known(throughput, present);
  size_t members_now = 0, members_then = 0;
  for (const GroupMembers& group : kept) members_now += group.size();
  for (const std::vector<NodeId>& group : present) members_then += group.size();
  const size_t gone = members_then - members_now;
  const size_t new_here = workers.size() - members_now;
  PlaceNewcomers(throughput, options.members_max, kept);

  ReplanDecision decision{.replan = gone + new_here > 0, .plan = MakePlan(throughput, kept)};
  GroupPlan best = PlanGroups(workers, options);
  decision.gain = decision.plan.groups.empty() ? 0 : best.value() / decision.plan.value() - 1;
  const std::string change =
      decision.replan ? absl::StrCat(Plural(gone, "worker"), " gone, ", new_here, " new; ") : "";
  const bool wrong_number =
      options.groups > 0 && kept.size() != std::min(options.groups, workers.size());
  if (wrong_number) {
    decision.reason =
        absl::StrFormat("%swanted: %s, left: %d; %s", change, Plural(best.groups.size(), "group"),
                        kept.size(), best.Explain());
    decision.replan = true;
    decision.plan = std::move(best);
  } else if (decision.gain > gain_min) {
    decision.reason =
        absl::StrFormat("%sother groups make %.1f %% more progress: %s; now %s", change,
                        decision.gain * 100, best.Explain(), decision.plan.Explain());
    decision.replan = true;
    decision.plan = std::move(best);
  } else {
    decision.reason =
        absl::StrFormat("%sthe groups stay: others would make only %.1f %% more progress", change,
                        decision.gain * 100);
  }
  return decision;
}

}  // namespace covey
