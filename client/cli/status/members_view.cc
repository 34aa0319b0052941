// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/members_view.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"
#include "client/cli/status/group_progress.h"
#include "client/step_times.h"

namespace covey::cli {
namespace {

std::string ShowTime(double seconds) {
  if (seconds < 1e-3) return absl::StrCat(ShowNumber(seconds * 1e6), " us");
  if (seconds < 1) return absl::StrCat(ShowNumber(seconds * 1e3), " ms");
  return absl::StrCat(ShowNumber(seconds), " s");
}

std::string ShowPercent(double part) { return absl::StrFormat("%.0f %%", part * 100); }

// A worker's group and its rank there.
struct Place {
  const proto::Group* group = nullptr;
  int rank = 0;

  std::string Show() const { return group == nullptr ? "-" : absl::StrCat(group->id(), "/", rank); }
  double Share() const {
    uint64_t sum = 0;
    for (const uint32_t share : group->shares()) sum += share;
    return sum == 0 || rank >= group->shares_size()
               ? 1.0 / group->members_size()
               : static_cast<double>(group->shares(rank)) / static_cast<double>(sum);
  }
};

std::map<uint64_t, Place> Places(const proto::ClusterView& view) {
  std::map<uint64_t, Place> places;
  for (const proto::Group& group : view.groups()) {
    for (int rank = 0; rank < group.members_size(); ++rank) {
      places[group.members(rank)] = {.group = &group, .rank = rank};
    }
  }
  return places;
}

std::string NoteOn(const proto::Node& node, const proto::NodeStatus* status) {
  if (!node.departure().empty()) return node.departure();
  if (node.draining()) return "drains";
  if (status == nullptr || !status->has_away()) return node.standby();
  return absl::StrCat("away: ", status->away().reason(), ", for at most ",
                      ShowSeconds(status->away().left_ms() / 1000.0), " more");
}

std::string ShowPace(const proto::Pace& pace) {
  switch (pace.state()) {
    case proto::Pace::STRAGGLER:
      return "straggler";
    case proto::Pace::HICCUPS:
      return "hiccups";
    case proto::Pace::STEADY:
      return "steady";
    default:
      return "-";
  }
}

// "even", "40:40:20 %".
std::string ShowShares(const proto::Group& group) {
  constexpr int kShown = 8;
  if (group.shares().empty()) return "even";
  std::vector<std::string> parts;
  for (int rank = 0; rank < std::min(group.members_size(), kShown); ++rank) {
    parts.push_back(absl::StrFormat("%.0f", Place{.group = &group, .rank = rank}.Share() * 100));
  }
  if (group.members_size() > kShown) parts.push_back("...");
  return absl::StrCat(absl::StrJoin(parts, ":"), " %");
}

// The members whose gradients a step needs.
std::string ShowWaitsFor(const proto::Group& group) {
  if (group.minimum_members() == 0) return "all";
  return absl::StrCat(group.minimum_members(), ", then ", group.grace_ms(), " ms");
}

}  // namespace

std::string NodesText(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::NodeStatus*> by_node;
  for (const proto::NodeStatus& node : status.nodes()) by_node[node.node()] = &node;
  std::map<uint64_t, Place> places = Places(status.view());
  std::vector<const proto::Node*> nodes;
  for (const proto::Node& node : status.view().nodes()) nodes.push_back(&node);
  std::stable_sort(nodes.begin(), nodes.end(), [](const proto::Node* a, const proto::Node* b) {
    return std::pair(a->role(), a->rank()) < std::pair(b->role(), b->rank());
  });

  TextTable table({"NODE", "STATE", "SILENT", "GROUP/RANK", "PROCESS", "HOST", "LABELS", "NOTE"});
  for (const proto::Node* node : nodes) {
    const auto found = by_node.find(node->id());
    const proto::NodeStatus* const known = found != by_node.end() ? found->second : nullptr;
    const bool heard = known != nullptr && node->state() == proto::Node::ALIVE;
    table.Add({node->name(), absl::AsciiStrToLower(proto::Node::State_Name(node->state())),
               heard ? ShowSeconds(static_cast<double>(known->silent_ms()) / 1000) : "-",
               places[node->id()].Show(), absl::StrCat(node->process_id()), node->host(),
               node->labels(), NoteOn(*node, known)});
  }
  return table.Render();
}

std::string WorkersText(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::Node*> nodes;
  for (const proto::Node& node : status.view().nodes()) nodes[node.id()] = &node;
  const std::map<uint64_t, Place> places = Places(status.view());
  TextTable table({"WORKER", "GROUP/RANK", "SHARE", "STEP", "SAMPLES/STEP", "INPUT", "COMPUTE",
                   "GROUP WAIT", "SERVER WAIT", "ASIDE", "SLOWNESS", "PACE"});
  for (const proto::NodeStatus& worker : status.nodes()) {
    const auto place = places.find(worker.node());
    const auto node = nodes.find(worker.node());
    const proto::Progress& progress = worker.progress();
    if (place == places.end() || node == nodes.end() || progress.step() == 0 ||
        node->second->state() != proto::Node::ALIVE) {
      continue;
    }
    const bool is_measured = progress.samples_per_step() > 0;
    const auto measured = [&](const std::string& text) { return is_measured ? text : "-"; };
    const client::StepTimes times = StepTimesOf(progress);
    const double slowness = worker.pace().slowness();
    table.Add({node->second->name(), place->second.Show(), ShowPercent(place->second.Share()),
               ShowCount(progress.step()), measured(ShowNumber(progress.samples_per_step())),
               measured(ShowTime(times.input)), measured(ShowTime(times.computation)),
               measured(ShowTime(times.group)), measured(ShowTime(times.servers)),
               ShowCount(progress.steps_aside()),
               slowness > 0 ? absl::StrFormat("%.2fx", slowness) : "-", ShowPace(worker.pace())});
  }
  return table.empty() ? "" : table.Render();
}

std::string GroupsText(const proto::StatusReply& status) {
  TextTable table({"GROUP", "STATE", "GENERATION", "MEMBERS", "SHARES", "WAITS FOR", "STEP",
                   "SAMPLES", "SAMPLES/S", "LOSS", "STALENESS", "REASON"});
  int index = 0;
  for (const GroupProgress& group : ProgressOfGroups(status)) {
    const proto::Group& view = status.view().groups(index++);
    const auto shown = [&](const std::string& text) { return group.started ? text : "-"; };
    table.Add({absl::StrCat(group.group), ShowState(group.state), absl::StrCat(group.generation),
               absl::StrCat(group.members), ShowShares(view), ShowWaitsFor(view),
               shown(ShowCount(group.step)), shown(ShowCount(group.samples)),
               shown(ShowNumber(group.samples_per_second)), shown(ShowNumber(group.loss)),
               shown(ShowNumber(group.staleness)), group.reason});
  }
  return table.Render();
}

}  // namespace covey::cli
