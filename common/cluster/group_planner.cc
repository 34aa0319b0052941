#include "common/cluster/group_planner.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"

namespace covey {
namespace {

constexpr size_t kLevels = 4;         // zone, rack, host, device
constexpr size_t kDeepestBorder = 3;  // groups may cross devices freely

struct Worker {
  std::array<std::string, kLevels> path;
  uint32_t rank;
  NodeId node;
};

std::array<std::string, kLevels> Path(const std::string& labels) {
  std::array<std::string, kLevels> path;
  const std::vector<std::string> parts = absl::StrSplit(labels, absl::MaxSplits('/', kLevels - 1));
  std::copy(parts.begin(), parts.end(), path.begin());
  return path;
}

class Planner {
 public:
  Planner(size_t workers, size_t groups)
      : small_size_(workers / groups), large_groups_(workers % groups) {}

  // Cuts as many groups as it can out of `workers`, which share the first `level` labels; returns
  // those left over.
  std::vector<Worker> Cut(std::vector<Worker> workers, size_t level) {
    std::vector<Worker> rest;
    if (level == kDeepestBorder) {
      rest = std::move(workers);
    } else {
      for (auto begin = workers.begin(); begin != workers.end();) {
        const auto end = std::find_if(begin, workers.end(), [&](const Worker& worker) {
          return worker.path[level] != begin->path[level];
        });
        const std::vector<Worker> left = Cut({begin, end}, level + 1);
        rest.insert(rest.end(), left.begin(), left.end());
        begin = end;
      }
    }
    auto begin = rest.begin();
    while (NextSize() <= static_cast<size_t>(rest.end() - begin)) {
      const auto end = begin + NextSize();
      if (large_groups_ > 0) --large_groups_;
      groups_.emplace_back(begin, end);
      begin = end;
    }
    return {begin, rest.end()};
  }

  std::vector<std::vector<Worker>> TakeGroups() { return std::move(groups_); }

 private:
  size_t NextSize() const { return small_size_ + (large_groups_ > 0 ? 1 : 0); }

  const size_t small_size_;
  size_t large_groups_;  // still to come, one larger than the others
  std::vector<std::vector<Worker>> groups_;
};

uint32_t LowestRank(const std::vector<Worker>& group) {
  return std::min_element(group.begin(), group.end(),
                          [](const Worker& a, const Worker& b) { return a.rank < b.rank; })
      ->rank;
}

}  // namespace

std::vector<std::vector<NodeId>> PlanGroups(std::vector<PlannedWorker> workers, size_t groups) {
  if (workers.empty() || groups == 0) return {};
  std::vector<Worker> sorted;
  for (const PlannedWorker& worker : workers) {
    sorted.push_back({Path(worker.labels), worker.rank, worker.node});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Worker& a, const Worker& b) {
    return std::tie(a.path, a.rank, a.node) < std::tie(b.path, b.rank, b.node);
  });

  Planner planner(sorted.size(), std::min(groups, sorted.size()));
  planner.Cut(std::move(sorted), 0);
  std::vector<std::vector<Worker>> cut = planner.TakeGroups();
  std::sort(cut.begin(), cut.end(),
            [](const auto& a, const auto& b) { return LowestRank(a) < LowestRank(b); });

  std::vector<std::vector<NodeId>> plan;
  for (const std::vector<Worker>& group : cut) {
    std::vector<NodeId>& members = plan.emplace_back();
    for (const Worker& worker : group) members.push_back(worker.node);
  }
  return plan;
}

}  // namespace covey
