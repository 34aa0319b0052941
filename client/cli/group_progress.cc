#include "client/cli/group_progress.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"

namespace covey::cli {

std::vector<GroupProgress> ProgressOfGroups(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::Progress*> by_node;
  for (const proto::NodeStatus& node : status.nodes()) {
    if (node.has_progress()) by_node[node.node()] = &node.progress();
  }
  std::vector<GroupProgress> groups;
  for (const proto::Group& group : status.view().groups()) {
    GroupProgress& sum = groups.emplace_back();
    sum.group = group.id();
    sum.state = group.state();
    sum.reason = group.reason();
    sum.members = group.members_size();
    int started = 0;
    for (const uint64_t member : group.members()) {
      const auto found = by_node.find(member);
      if (found == by_node.end() || found->second->step() == 0) continue;
      const proto::Progress& progress = *found->second;
      ++started;
      sum.step = std::max(sum.step, progress.step());
      sum.samples += progress.samples();
      sum.samples_per_second += progress.samples_per_second();
      sum.loss += (progress.loss() - sum.loss) / started;
      sum.staleness += (progress.staleness() - sum.staleness) / started;
    }
    sum.started = started > 0;
  }
  return groups;
}

std::string ShowState(proto::Group::State state) {
  return absl::AsciiStrToLower(proto::Group::State_Name(state));
}

}  // namespace covey::cli
