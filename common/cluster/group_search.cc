#include "common/cluster/group_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "common/base/random.h"

namespace covey {
namespace {

// Groups may cross devices freely.
constexpr Level kNarrowestBorder = Level::kHost;
// A class of speed ends where a worker takes so many times longer than its fastest.
constexpr double kClassRatio = 1.25;
// Workers that improvement looks at first, and only, in a large cluster.
constexpr size_t kCandidatesMax = 256;
// Below this a gain is noise of the last bits.
constexpr double kGainMin = 1e-9;

// Number of each worker's class of speed, the fastest first.
std::vector<uint32_t> SpeedClasses(const GroupRater& rater) {
  std::vector<uint32_t> by_speed(rater.size());
  std::iota(by_speed.begin(), by_speed.end(), 0);
  std::stable_sort(by_speed.begin(), by_speed.end(),
                   [&](uint32_t a, uint32_t b) { return rater.seconds(a) < rater.seconds(b); });
  std::vector<uint32_t> classes(rater.size());
  uint32_t speed_class = 0;
  double fastest = rater.size() > 0 ? rater.seconds(by_speed.front()) : 0;
  for (const uint32_t worker : by_speed) {
    if (rater.seconds(worker) > kClassRatio * fastest) {
      fastest = rater.seconds(worker);
      ++speed_class;
    }
    classes[worker] = speed_class;
  }
  return classes;
}

// Cuts groups of given sizes out of domains, the narrowest first.
class Cutter {
 public:
  Cutter(const GroupRater& rater, GroupOrder order, size_t workers, size_t groups)
      : rater_(rater),
        narrowest_(order == GroupOrder::kTopology ? kNarrowestBorder : Level::kRack),
        small_size_(workers / groups),
        large_groups_(workers % groups) {}

  // Out of `workers`, who share a domain of `level`; returns those left over.
  std::vector<uint32_t> Cut(std::vector<uint32_t> workers, Level level) {
    std::vector<uint32_t> rest;
    if (level <= narrowest_) {
      rest = std::move(workers);
    } else {
      const Level narrower = static_cast<Level>(static_cast<size_t>(level) - 1);
      for (auto begin = workers.begin(); begin != workers.end();) {
        const uint32_t domain = rater_.domain(*begin, narrower);
        const auto end = std::find_if(begin, workers.end(), [&](uint32_t worker) {
          return rater_.domain(worker, narrower) != domain;
        });
        const std::vector<uint32_t> left = Cut({begin, end}, narrower);
        rest.insert(rest.end(), left.begin(), left.end());
        begin = end;
      }
    }
    auto begin = rest.begin();
    while (NextSize() > 0 && NextSize() <= static_cast<size_t>(rest.end() - begin)) {
      const auto end = begin + static_cast<std::ptrdiff_t>(NextSize());
      if (large_groups_ > 0) --large_groups_;
      groups_.emplace_back(begin, end);
      std::sort(groups_.back().begin(), groups_.back().end());
      begin = end;
    }
    return {begin, rest.end()};
  }

  std::vector<GroupMembers> TakeGroups() { return std::move(groups_); }

 private:
  size_t NextSize() const { return small_size_ + (large_groups_ > 0 ? 1 : 0); }

  const GroupRater& rater_;
  const Level narrowest_;
  const size_t small_size_;
  size_t large_groups_;  // still to come, one larger than the others
  std::vector<GroupMembers> groups_;
};

std::vector<GroupMembers> CutWorkers(const GroupRater& rater, GroupOrder order,
                                     std::vector<uint32_t> workers, size_t groups) {
  if (order == GroupOrder::kRackAndSpeed) {
    std::stable_sort(workers.begin(), workers.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(rater.domain(a, Level::kRack), rater.seconds(a)) <
             std::pair(rater.domain(b, Level::kRack), rater.seconds(b));
    });
  }
  Cutter cutter(rater, order, workers.size(), groups);
  cutter.Cut(std::move(workers), Level::kCluster);
  return cutter.TakeGroups();
}

std::vector<uint32_t> Everybody(const GroupRater& rater) {
  std::vector<uint32_t> workers(rater.size());
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

// In order, sizes differ by at most one.
std::vector<GroupMembers> CutEvenly(const std::vector<uint32_t>& workers, size_t groups) {
  std::vector<GroupMembers> cut;
  auto begin = workers.begin();
  for (size_t group = 0; group < groups; ++group) {
    const size_t size = workers.size() / groups + (group < workers.size() % groups ? 1 : 0);
    const auto end = begin + static_cast<std::ptrdiff_t>(size);
    cut.emplace_back(begin, end);
    std::sort(cut.back().begin(), cut.back().end());
    begin = end;
  }
  return cut;
}

// How many groups each of the sets gets: one, then always one more where groups are largest.
// Precondition: groups >= sets.
std::vector<size_t> Divide(const std::vector<std::vector<uint32_t>>& sets, size_t groups) {
  std::vector<size_t> counts(sets.size(), 1);
  for (size_t left = groups - sets.size(); left > 0; --left) {
    size_t largest = 0;
    for (size_t i = 1; i < sets.size(); ++i) {
      if (sets[i].size() * counts[largest] > sets[largest].size() * counts[i]) largest = i;
    }
    ++counts[largest];
  }
  return counts;
}

// Each rack on its own if there are enough groups for that.
void CutByRack(const GroupRater& rater, std::vector<uint32_t> workers, size_t groups,
               std::vector<GroupMembers>& cut) {
  std::vector<std::vector<uint32_t>> racks;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (i == 0 ||
        rater.domain(workers[i], Level::kRack) != rater.domain(workers[i - 1], Level::kRack)) {
      racks.emplace_back();
    }
    racks.back().push_back(workers[i]);
  }
  if (racks.size() > groups) racks = {std::move(workers)};
  const std::vector<size_t> counts = Divide(racks, groups);
  for (size_t i = 0; i < racks.size(); ++i) {
    for (GroupMembers& group :
         CutWorkers(rater, GroupOrder::kTopology, std::move(racks[i]), counts[i])) {
      cut.push_back(std::move(group));
    }
  }
}

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
  Improver(const GroupRater& rater, const ImproveOptions& options,
           std::vector<GroupMembers>& groups)
      : rater_(rater), options_(options), groups_(groups), group_of_(rater.size()) {
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
    return rater_.SamplesPerSecond(rater_.Rate(members), groups_.size());
  }

  // Those first whose time differs most from the median of their group.
  std::vector<uint32_t> Candidates() const {
    std::vector<double> odd(rater_.size());
    for (const GroupMembers& group : groups_) {
      std::vector<double> seconds;
      for (const uint32_t member : group) seconds.push_back(rater_.seconds(member));
      const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
      std::nth_element(seconds.begin(), middle, seconds.end());
      for (const uint32_t member : group) {
        odd[member] = std::abs(std::log(rater_.seconds(member) / *middle));
      }
    }
    std::vector<uint32_t> workers = Everybody(rater_);
    std::stable_sort(workers.begin(), workers.end(),
                     [&](uint32_t a, uint32_t b) { return odd[a] > odd[b]; });
    if (workers.size() > kCandidatesMax) workers.resize(kCandidatesMax);
    return workers;
  }

  // Takes the best of all moves and swaps of one worker.
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

  // Equal workers at the same place need not be tried one by one.
  void TrySwaps(uint32_t worker, const GroupMembers& without, size_t group, Change& best) {
    std::vector<std::pair<uint32_t, double>> tried;
    for (const uint32_t other : groups_[group]) {
      if (Exhausted()) return;
      const std::pair<uint32_t, double> kind = {rater_.domain(other, Level::kHost),
                                                rater_.seconds(other)};
      if (rater_.worker(other).failures_per_hour == 0) {
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

  const GroupRater& rater_;
  const ImproveOptions& options_;
  std::vector<GroupMembers>& groups_;
  std::vector<size_t> group_of_;
  std::vector<double> rates_;
  size_t looked_at_ = 0;
};

}  // namespace

std::vector<GroupMembers> CutGroups(const GroupRater& rater, GroupOrder order, size_t groups) {
  std::vector<uint32_t> workers = Everybody(rater);
  if (order == GroupOrder::kSpeed) {
    const std::vector<uint32_t> classes = SpeedClasses(rater);
    std::stable_sort(workers.begin(), workers.end(),
                     [&](uint32_t a, uint32_t b) { return classes[a] < classes[b]; });
    return CutEvenly(workers, groups);
  }
  return CutWorkers(rater, order, std::move(workers), groups);
}

std::vector<GroupMembers> CutClasses(const GroupRater& rater, size_t groups) {
  const std::vector<uint32_t> classes = SpeedClasses(rater);
  std::vector<std::vector<uint32_t>> members;
  for (uint32_t worker = 0; worker < rater.size(); ++worker) {
    members.resize(std::max<size_t>(members.size(), classes[worker] + 1));
    members[classes[worker]].push_back(worker);
  }
  if (members.size() > groups) return {};
  const std::vector<size_t> counts = Divide(members, groups);
  std::vector<GroupMembers> cut;
  for (size_t i = 0; i < members.size(); ++i)
    CutByRack(rater, std::move(members[i]), counts[i], cut);
  return cut;
}

size_t CountSpeedClasses(const GroupRater& rater) {
  const std::vector<uint32_t> classes = SpeedClasses(rater);
  return classes.empty() ? 0 : *std::max_element(classes.begin(), classes.end()) + 1;
}

std::vector<GroupMembers> CutAtRandom(const GroupRater& rater, uint64_t seed, size_t groups) {
  std::vector<uint32_t> workers = Everybody(rater);
  Random random(seed);
  for (size_t i = workers.size(); i > 1; --i) {
    std::swap(workers[i - 1], workers[random.Below(i)]);
  }
  return CutEvenly(workers, groups);
}

double ValueOf(const GroupRater& rater, const std::vector<GroupMembers>& groups) {
  double samples_per_second = 0;
  for (const GroupMembers& group : groups) {
    samples_per_second += rater.SamplesPerSecond(rater.Rate(group), groups.size());
  }
  return samples_per_second * rater.StatisticalFactor(groups.size());
}

void ImproveGroups(const GroupRater& rater, const ImproveOptions& options,
                   std::vector<GroupMembers>& groups) {
  Improver(rater, options, groups).Run();
}

}  // namespace covey
