// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/view_lookup.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace covey::scheduler {
namespace {

constexpr size_t kNamesListed = 8;

// The first of `in_all` names, of which `names` has at least those that are listed.
std::string ListFirst(const std::vector<std::string>& names, size_t in_all) {
  const size_t listed = std::min(names.size(), kNamesListed);
  const auto end = names.begin() + static_cast<ptrdiff_t>(listed);
  return absl::StrCat(absl::StrJoin(names.begin(), end, ", "),
                      in_all > listed ? absl::StrCat(" and ", in_all - listed, " more") : "");
}

}  // namespace

std::string RoleName(proto::Role role) { return absl::AsciiStrToLower(proto::Role_Name(role)); }

std::string NodeName(proto::Role role, uint32_t rank) {
  return absl::StrCat(RoleName(role), "-", rank);
}

std::string Describe(const proto::Node& node) {
  return absl::StrCat(node.name(), " (node ", node.id(), ", pid ", node.process_id(), " on host ",
                      node.host(), ")");
}

const proto::Node* FindNode(const proto::ClusterView& view, NodeId id) {
  const auto& nodes = view.nodes();
  const auto at =
      std::lower_bound(nodes.begin(), nodes.end(), id.value(),
                       [](const proto::Node& node, uint64_t wanted) { return node.id() < wanted; });
  return at != nodes.end() && at->id() == id.value() ? &*at : nullptr;
}

const proto::Node* FindHolder(const proto::ClusterView& view, proto::Role role, uint32_t rank) {
  const auto& nodes = view.nodes();
  const auto at = std::find_if(nodes.rbegin(), nodes.rend(), [&](const proto::Node& node) {
    return node.role() == role && node.rank() == rank;
  });
  return at == nodes.rend() ? nullptr : &*at;
}

const proto::Group* FindGroup(const proto::ClusterView& view, GroupId id) {
  const auto& groups = view.groups();
  const auto at = std::lower_bound(
      groups.begin(), groups.end(), id.value(),
      [](const proto::Group& group, uint32_t wanted) { return group.id() < wanted; });
  return at != groups.end() && at->id() == id.value() ? &*at : nullptr;
}

const proto::Group* FindActiveGroupOf(const proto::ClusterView& view, NodeId worker) {
  for (const proto::Group& group : view.groups()) {
    const auto& members = group.members();
    if (group.state() == proto::Group::ACTIVE &&
        std::find(members.begin(), members.end(), worker.value()) != members.end()) {
      return &group;
    }
  }
  return nullptr;
}

std::set<uint64_t> MembersOfActiveGroups(const proto::ClusterView& view) {
  std::set<uint64_t> members;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    members.insert(group.members().begin(), group.members().end());
  }
  return members;
}

std::string NameOf(const proto::ClusterView& view, NodeId id) {
  const proto::Node* node = FindNode(view, id);
  return node == nullptr ? absl::StrCat("node ", id.value()) : node->name();
}

std::vector<std::string> NamesOf(const proto::ClusterView& view, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (NodeId id : nodes) names.push_back(FindNode(view, id)->name());
  return names;
}

std::string ListNames(const std::vector<std::string>& names) {
  return ListFirst(names, names.size());
}

std::string MissingNodes(const JobSpec& job, const proto::ClusterView& view, Expected expected) {
  std::vector<std::string> named;
  size_t missing = 0;
  const auto look_for = [&](proto::Role role, uint32_t count) {
    std::vector<bool> here(count, false);
    for (const proto::Node& node : view.nodes()) {
      if (node.role() == role && node.state() == proto::Node::ALIVE && node.rank() < count) {
        here[node.rank()] = true;
      }
    }
    for (uint32_t rank = 0; rank < count; ++rank) {
      if (!here[rank] && ++missing <= kNamesListed) named.push_back(NodeName(role, rank));
    }
  };
  look_for(proto::SERVER, job.servers);
  if (expected == Expected::kServersAndWorkers) look_for(proto::WORKER, job.workers());
  return ListFirst(named, missing);
}

}  // namespace covey::scheduler
