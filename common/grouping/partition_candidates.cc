// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/partition_candidates.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/random.h"

namespace covey {
namespace {

// Groups may cross devices freely.
constexpr Level kNarrowestBorder = Level::kHost;
// A class of speed ends before a worker that takes this many times as long as the fastest of the
// class.
constexpr double kClassRatio = 1.25;

// Number of each worker's class of speed, the fastest first.
std::vector<uint32_t> SpeedClasses(const ThroughputModel& throughput) {
  std::vector<uint32_t> by_speed(throughput.size());
  std::iota(by_speed.begin(), by_speed.end(), 0);
  std::stable_sort(by_speed.begin(), by_speed.end(), [&](uint32_t a, uint32_t b) {
    return throughput.seconds(a) < throughput.seconds(b);
  });
  std::vector<uint32_t> classes(throughput.size());
  uint32_t speed_class = 0;
  double fastest = throughput.size() > 0 ? throughput.seconds(by_speed.front()) : 0;
  for (const uint32_t worker : by_speed) {
    if (throughput.seconds(worker) > kClassRatio * fastest) {
      fastest = throughput.seconds(worker);
      ++speed_class;
    }
    classes[worker] = speed_class;
  }
  return classes;
}

// Cuts groups of given sizes out of domains, the narrowest first.
class Cutter {
 public:
  Cutter(const ThroughputModel& throughput, GroupOrder order, size_t workers, size_t groups)
      : throughput_(throughput),
        narrowest_(order == GroupOrder::kTopology ? kNarrowestBorder : Level::kRack),
        small_size_(workers / groups),
        large_groups_(workers % groups) {}

  // Cuts groups out of `workers`, which share a domain of `level`; returns the remaining workers.
  std::vector<uint32_t> Cut(std::vector<uint32_t> workers, Level level) {
    std::vector<uint32_t> rest;
    if (level <= narrowest_) {
      rest = std::move(workers);
    } else {
      const Level narrower = static_cast<Level>(static_cast<size_t>(level) - 1);
      for (auto begin = workers.begin(); begin != workers.end();) {
        const uint32_t domain = throughput_.domain(*begin, narrower);
        const auto end = std::find_if(begin, workers.end(), [&](uint32_t worker) {
          return throughput_.domain(worker, narrower) != domain;
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

  const ThroughputModel& throughput_;
  const Level narrowest_;
  const size_t small_size_;
  size_t large_groups_;  // still to cut, with one member more than the others
  std::vector<GroupMembers> groups_;
};

std::vector<GroupMembers> CutWorkers(const ThroughputModel& throughput, GroupOrder order,
                                     std::vector<uint32_t> workers, size_t groups) {
  if (order == GroupOrder::kRackAndSpeed) {
    std::stable_sort(workers.begin(), workers.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(throughput.domain(a, Level::kRack), throughput.seconds(a)) <
             std::pair(throughput.domain(b, Level::kRack), throughput.seconds(b));
    });
  }
  Cutter cutter(throughput, order, workers.size(), groups);
  cutter.Cut(std::move(workers), Level::kCluster);
  return cutter.TakeGroups();
}

std::vector<uint32_t> Everybody(const ThroughputModel& throughput) {
  std::vector<uint32_t> workers(throughput.size());
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

// In order, with sizes that differ by at most one.
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

// The number of groups for each of the sets: first one each, then one more for the set with the
// largest groups, until all are used. Precondition: groups >= sets.
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

// Cuts each rack by itself if there are enough groups for that.
void CutByRack(const ThroughputModel& throughput, std::vector<uint32_t> workers, size_t groups,
               std::vector<GroupMembers>& cut) {
  std::vector<std::vector<uint32_t>> racks;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (i == 0 || throughput.domain(workers[i], Level::kRack) !=
                      throughput.domain(workers[i - 1], Level::kRack)) {
      racks.emplace_back();
    }
    racks.back().push_back(workers[i]);
  }
  if (racks.size() > groups) racks = {std::move(workers)};
  const std::vector<size_t> counts = Divide(racks, groups);
  for (size_t i = 0; i < racks.size(); ++i) {
    for (GroupMembers& group :
         CutWorkers(throughput, GroupOrder::kTopology, std::move(racks[i]), counts[i])) {
      cut.push_back(std::move(group));
    }
  }
}

}  // namespace

std::vector<GroupMembers> CutGroups(const ThroughputModel& throughput, GroupOrder order,
                                    size_t groups) {
  std::vector<uint32_t> workers = Everybody(throughput);
  if (order == GroupOrder::kSpeed) {
    const std::vector<uint32_t> classes = SpeedClasses(throughput);
    std::stable_sort(workers.begin(), workers.end(),
                     [&](uint32_t a, uint32_t b) { return classes[a] < classes[b]; });
    return CutEvenly(workers, groups);
  }
  return CutWorkers(throughput, order, std::move(workers), groups);
}

std::vector<GroupMembers> CutClasses(const ThroughputModel& throughput, size_t groups) {
  const std::vector<uint32_t> classes = SpeedClasses(throughput);
  std::vector<std::vector<uint32_t>> members;
  for (uint32_t worker = 0; worker < throughput.size(); ++worker) {
    members.resize(std::max<size_t>(members.size(), classes[worker] + 1));
    members[classes[worker]].push_back(worker);
  }
  if (members.size() > groups) return {};
  const std::vector<size_t> counts = Divide(members, groups);
  std::vector<GroupMembers> cut;
  for (size_t i = 0; i < members.size(); ++i)
    CutByRack(throughput, std::move(members[i]), counts[i], cut);
  return cut;
}

size_t CountSpeedClasses(const ThroughputModel& throughput) {
  const std::vector<uint32_t> classes = SpeedClasses(throughput);
  return classes.empty() ? 0 : *std::max_element(classes.begin(), classes.end()) + 1;
}

std::vector<GroupMembers> CutAtRandom(const ThroughputModel& throughput, uint64_t seed,
                                      size_t groups) {
  std::vector<uint32_t> workers = Everybody(throughput);
  Random random(seed);
  for (size_t i = workers.size(); i > 1; --i) {
    std::swap(workers[i - 1], workers[random.Below(i)]);
  }
  return CutEvenly(workers, groups);
}

}  // namespace covey
