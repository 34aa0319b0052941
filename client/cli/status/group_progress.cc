// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/group_progress.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"

namespace covey::cli {
client::StepTimes StepTimesOf(const proto::Progress& progress) {
  return {.computation = progress.compute_seconds() - progress.input_seconds(),
          .input = progress.input_seconds(),
          .group = progress.group_seconds(),
          .servers = progress.servers_seconds()};
}

std::vector<GroupProgress> ProgressOfGroups(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::NodeStatus*> by_node;
  for (const proto::NodeStatus& node : status.nodes()) by_node[node.node()] = &node;
  std::vector<GroupProgress> groups;
  for (const proto::Group& group : status.view().groups()) {
    GroupProgress& sum = groups.emplace_back();
    sum.group = group.id();
    sum.state = group.state();
    sum.reason = group.reason();
    sum.members = group.members_size();
    sum.generation = group.generation();
    int started = 0;
    int with_loss = 0;
    int measured = 0;
    client::StepTimes of_members;
    for (const uint64_t member : group.members()) {
      const auto found = by_node.find(member);
      if (found == by_node.end()) continue;
      const proto::Pace::State pace = found->second->pace().state();
      if (pace == proto::Pace::STRAGGLER || pace == proto::Pace::HICCUPS) ++sum.stragglers;
      const proto::Progress& progress = found->second->progress();
      if (progress.step() == 0) continue;
      ++started;
      sum.step = std::max(sum.step, progress.step());
      sum.samples += progress.samples();
      sum.samples_per_second += progress.samples_per_second();
      sum.steps_aside += progress.steps_aside();
      sum.compute_seconds = std::max(sum.compute_seconds, progress.compute_seconds());
      sum.wait_seconds += (progress.wait_seconds() - sum.wait_seconds) / started;
      const client::StepTimes times = StepTimesOf(progress);
      if (times.total() > 0) ++measured;
      of_members.Add(times, 1);
      if (progress.samples() > 0) sum.loss += (progress.loss() - sum.loss) / ++with_loss;
      sum.staleness += (progress.staleness() - sum.staleness) / started;
    }
    sum.started = started > 0;
    if (measured > 0) sum.step_times.Add(of_members, 1.0 / measured);
  }
  return groups;
}

std::string ShowState(proto::Group::State state) {
  return absl::AsciiStrToLower(proto::Group::State_Name(state));
}

}  // namespace covey::cli
