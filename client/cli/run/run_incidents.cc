// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_incidents.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"

namespace covey::cli {
namespace {

const proto::Node* FindNode(const proto::ClusterView& view, uint64_t id) {
  for (const proto::Node& node : view.nodes()) {
    if (node.id() == id) return &node;
  }
  return nullptr;
}

uint64_t HeadOf(const proto::Shard& shard) {
  return shard.chain().empty() ? 0 : shard.chain(0).node();
}

std::string Shards(uint32_t count, absl::string_view what) {
  return absl::StrCat(count, count == 1 ? " shard " : " shards ", what);
}

}  // namespace

void RunIncidents::Died(double seconds, absl::string_view node, absl::string_view how) {
  ++losses_.died;
  died_at_[std::string(node)] = seconds;
  Note(seconds, node, how);
}

void RunIncidents::Note(double seconds, absl::string_view node, absl::string_view what) {
  if (incidents_.size() == kIncidentsMax) return;
  // Events of the scheduler arrive later than they happened.
  const auto place =
      std::upper_bound(incidents_.begin(), incidents_.end(), seconds,
                       [](double at, const Incident& incident) { return at < incident.seconds; });
  incidents_.insert(place,
                    {.seconds = seconds, .node = std::string(node), .what = std::string(what)});
}

void RunIncidents::See(double seconds, const proto::StatusReply& status) {
  SeeNodes(seconds, status);
  SeeShards(seconds, status);
  for (const proto::NodeStatus& node : status.nodes()) {
    const proto::Progress& progress = node.progress();
    uint64_t& told = recoveries_[node.node()];
    if (progress.recoveries() > told) {
      told = progress.recoveries();
      losses_.recovery_seconds = std::max(losses_.recovery_seconds, progress.recovery_seconds());
      // Each member of a group reports the same recoveries.
      losses_.recoveries = std::max(losses_.recoveries, told);
    }
  }
  // Workers report twice a second, and so miss a recovery just before their end.
  for (const proto::Group& group : status.view().groups()) {
    Recovered& recovered = recovered_[group.id()];
    if (group.recovery_generation() <= recovered.generation) continue;
    recovered.generation = group.recovery_generation();
    losses_.recoveries = std::max(losses_.recoveries, ++recovered.count);
  }
  last_ = status.view();
}

void RunIncidents::SeeNodes(double seconds, const proto::StatusReply& status) {
  // Events count from the scheduler's start, and so does its uptime.
  const double scheduler_start = seconds - static_cast<double>(status.uptime_ms()) / 1000;
  for (const proto::Node& node : status.view().nodes()) {
    const proto::Node* const before = FindNode(last_, node.id());
    if (node.draining() && (before == nullptr || !before->draining())) {
      Note(seconds, node.name(), "drains");
    }
    if (before == nullptr || before->state() != proto::Node::ALIVE) continue;
    if (node.state() == proto::Node::LEFT && before->draining()) {
      ++losses_.drained;
      Note(seconds, node.name(), "drained and left");
    }
    if (node.state() != proto::Node::DEAD) continue;
    double found = seconds;
    for (const proto::Event& event : status.events()) {
      if (absl::StartsWith(event.text(), node.name()) && absl::StrContains(event.text(), " dead")) {
        found = scheduler_start + static_cast<double>(event.at_ms()) / 1000;
      }
    }
    found_dead_[node.id()] = found;
    const auto died = died_at_.find(node.name());
    Note(found, node.name(),
         died == died_at_.end() ? "found dead by the scheduler"
                                : absl::StrCat("found dead by the scheduler after ",
                                               ShowSeconds(std::max(found - died->second, 0.0))));
  }
}

void RunIncidents::SeeShards(double seconds, const proto::StatusReply& status) {
  struct Change {
    uint32_t promoted = 0;
    uint32_t lost = 0;
    uint32_t moved = 0;
  };
  std::map<uint64_t, Change> by_old_head;
  for (const proto::Table& table : status.view().tables()) {
    const auto before =
        std::find_if(last_.tables().begin(), last_.tables().end(),
                     [&](const proto::Table& other) { return other.id() == table.id(); });
    if (before == last_.tables().end()) continue;
    for (int i = 0; i < std::min(table.shards_size(), before->shards_size()); ++i) {
      const proto::Shard& was = before->shards(i);
      const proto::Shard& is = table.shards(i);
      const uint64_t old_head = HeadOf(was);
      if (old_head == 0) continue;
      const proto::Node* const old_node = FindNode(status.view(), old_head);
      Change& change = by_old_head[old_head];
      if (is.generation() != was.generation()) {
        ++change.lost;
      } else if (HeadOf(is) != old_head) {
        const bool is_dead = old_node != nullptr && old_node->state() == proto::Node::DEAD;
        ++(is_dead ? change.promoted : change.moved);
      }
    }
  }
  for (const auto& [head, change] : by_old_head) {
    const proto::Node* const node = FindNode(status.view(), head);
    const std::string name = node == nullptr ? absl::StrCat("node ", head) : node->name();
    losses_.failovers += change.promoted;
    losses_.moved += change.moved;
    losses_.lost += change.lost;
    if (change.promoted > 0) {
      const auto found = found_dead_.find(head);
      const auto died = died_at_.find(name);
      if (found != found_dead_.end() && died != died_at_.end()) {
        losses_.failover_seconds =
            std::max(losses_.failover_seconds, std::max(found->second - died->second, 0.0));
      }
      Note(seconds, name, Shards(change.promoted, "failed over to replicas, nothing lost"));
    }
    if (change.lost > 0) Note(seconds, name, Shards(change.lost, "lost, re-initialized elsewhere"));
    if (change.moved > 0) Note(seconds, name, Shards(change.moved, "moved to other servers"));
  }
}

}  // namespace covey::cli
