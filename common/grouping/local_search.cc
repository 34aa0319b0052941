// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/local_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace covey {
namespace {

// In a large cluster, improvement examines only this many workers.
constexpr size_t kCandidatesMax = 256;
// A smaller gain is rounding noise.
constexpr double kGainMin = 1e-9;

GroupMembers Without(const GroupMembers& members, uint32_t gone) {
  GroupMembers rest;
  rest.reserve(members.size());
  for (const uint32_t member : members) {
    if (member != gone) rest.push_back(member);
  }
  return rest;
}

GroupMembers With(GroupMembers members, uint32_t added) {
  members.insert(std::lower_bound(members.begin(), members.end(), added), added);
  return members;
}

class Improver {
 public:
  Improver(const ThroughputModel& throughput, const ImproveOptions& options,
           std::vector<GroupMembers>& groups)
      : throughput_(throughput), options_(options), groups_(groups), group_of_(throughput.size()) {
    for (size_t group = 0; group < groups_.size(); ++group) {
      for (const uint32_t member : groups_[group]) group_of_[member] = group;
      rates_.push_back(Rate(groups_[group]));
    }
  }

  void Run() {
    for (bool improved = groups_.size() > 1; improved && !Exhausted();) {
      improved = false;
      for (const uint32_t worker : Candidates()) {
        if (Exhausted()) return;
        improved = Place(worker) || improved;
      }
    }
  }

 private:
  bool Exhausted() const { return looked_at_ >= options_.effort; }

  double Rate(const GroupMembers& members) {
    looked_at_ += members.size() + 1;
    return throughput_.SamplesPerSecond(throughput_.Rate(members), groups_.size());
  }

  // The workers whose time differs most from the median of their group come first.
  std::vector<uint32_t> Candidates() const {
    std::vector<double> odd(throughput_.size());
    for (const GroupMembers& group : groups_) {
      std::vector<double> seconds;
      for (const uint32_t member : group) seconds.push_back(throughput_.seconds(member));
      const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
      std::nth_element(seconds.begin(), middle, seconds.end());
      for (const uint32_t member : group) {
        odd[member] = std::abs(std::log(throughput_.seconds(member) / *middle));
      }
    }
    std::vector<uint32_t> workers(throughput_.size());
    std::iota(workers.begin(), workers.end(), 0);
    std::stable_sort(workers.begin(), workers.end(),
                     [&](uint32_t a, uint32_t b) { return odd[a] > odd[b]; });
    if (workers.size() > kCandidatesMax) workers.resize(kCandidatesMax);
    return workers;
  }

  // Applies the best of all moves and swaps of one worker.
  bool Place(uint32_t worker) {
    const size_t home = group_of_[worker];
    Change best;
    const GroupMembers without = Without(groups_[home], worker);
    const double rate_without = without.empty() ? 0 : Rate(without);
    for (size_t group = 0; group < groups_.size() && !Exhausted(); ++group) {
      if (group == home) continue;
      TryMove(worker, without, rate_without, group, best);
      TrySwaps(worker, without, group, best);
    }
    if (best.gain <= kGainMin * rates_[home]) return false;
    groups_[home] = std::move(best.home);
    groups_[best.group] = std::move(best.there);
    for (const size_t group : {home, best.group}) {
      rates_[group] = Rate(groups_[group]);
      for (const uint32_t member : groups_[group]) group_of_[member] = group;
    }
    return true;
  }

  struct Change {
    double gain = 0;
    size_t group = 0;
    GroupMembers home, there;
  };

  void TryMove(uint32_t worker, const GroupMembers& without, double rate_without, size_t group,
               Change& best) {
    if (options_.keep_sizes || without.empty() || groups_[group].size() >= options_.members_max) {
      return;
    }
    Consider(without, rate_without, With(groups_[group], worker), group, worker, best);
  }

  // Of equal workers at the same place only one needs to be tried.
  void TrySwaps(uint32_t worker, const GroupMembers& without, size_t group, Change& best) {
    std::vector<std::pair<uint32_t, double>> tried;
    for (const uint32_t other : groups_[group]) {
      if (Exhausted()) return;
      const std::pair<uint32_t, double> kind = {throughput_.domain(other, Level::kHost),
                                                throughput_.seconds(other)};
      if (throughput_.worker(other).failures_per_hour == 0) {
        if (!tried.empty() && tried.back() == kind) continue;
        tried.push_back(kind);
      }
      GroupMembers home = With(without, other);
      const double rate = Rate(home);
      Consider(std::move(home), rate, With(Without(groups_[group], other), worker), group, worker,
               best);
    }
  }

  void Consider(GroupMembers home, double rate, GroupMembers there, size_t group, uint32_t worker,
                Change& best) {
    const double gain = rate + Rate(there) - rates_[group_of_[worker]] - rates_[group];
    if (gain <= best.gain) return;
    best = {.gain = gain, .group = group, .home = std::move(home), .there = std::move(there)};
  }

  const ThroughputModel& throughput_;
  const ImproveOptions& options_;
  std::vector<GroupMembers>& groups_;
  std::vector<size_t> group_of_;
  std::vector<double> rates_;
  size_t looked_at_ = 0;
};

}  // namespace

double ValueOf(const ThroughputModel& throughput, const std::vector<GroupMembers>& groups) {
  std::vector<ThroughputModel::Terms> terms;
  double slowest = 0;
  for (const GroupMembers& group : groups) {
    terms.push_back(throughput.Rate(group));
    slowest = std::max(slowest, throughput.StepSeconds(terms.back(), groups.size()));
  }
  double samples_per_second = 0;
  for (const ThroughputModel::Terms& each : terms) {
    samples_per_second += throughput.SamplesPerSecond(each, groups.size(), slowest);
  }
  return samples_per_second * throughput.StatisticalFactor(groups.size()) *
         throughput.Fit(groups.size());
}

void ImproveGroups(const ThroughputModel& throughput, const ImproveOptions& options,
                   std::vector<GroupMembers>& groups) {
  if (!throughput.groups_in_step()) Improver(throughput, options, groups).Run();
}

}  // namespace covey
