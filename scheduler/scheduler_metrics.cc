// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler_metrics.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::scheduler {
namespace {

constexpr size_t kGroupsNamed = 128;
constexpr size_t kTablesNamed = 16;

constexpr std::pair<proto::Role, const char*> kRoles[] = {
    {proto::SERVER, "server"}, {proto::WORKER, "worker"}, {proto::CLIENT, "client"}};
constexpr std::pair<proto::Node::State, const char*> kNodeStates[] = {
    {proto::Node::ALIVE, "alive"}, {proto::Node::DEAD, "dead"}, {proto::Node::LEFT, "left"}};
constexpr std::pair<proto::Group::State, const char*> kGroupStates[] = {
    {proto::Group::ACTIVE, "active"},
    {proto::Group::BROKEN, "broken"},
    {proto::Group::DONE, "done"}};
constexpr std::pair<proto::SnapshotStatus::State, const char*> kSnapshotStates[] = {
    {proto::SnapshotStatus::UNDER_WAY, "under_way"},
    {proto::SnapshotStatus::COMPLETE, "complete"},
    {proto::SnapshotStatus::FAILED, "failed"}};
constexpr std::pair<proto::Pace::State, const char*> kPaces[] = {
    {proto::Pace::LEARNING, "learning"},
    {proto::Pace::STEADY, "steady"},
    {proto::Pace::STRAGGLER, "straggler"},
    {proto::Pace::HICCUPS, "hiccups"}};

using NodeStatuses = std::map<uint64_t, const proto::NodeStatus*>;

NodeStatuses StatusesOf(const proto::StatusReply& status) {
  NodeStatuses found;
  for (const proto::NodeStatus& node : status.nodes()) found.emplace(node.node(), &node);
  return found;
}

void AddNodes(const proto::StatusReply& status, MetricPage& page) {
  const NodeStatuses statuses = StatusesOf(status);
  for (const auto& [role, role_name] : kRoles) {
    const auto of_role = [role = role](const proto::Node& node) { return node.role() == role; };
    const auto& nodes = status.view().nodes();
    for (const auto& [state, state_name] : kNodeStates) {
      const auto count =
          std::count_if(nodes.begin(), nodes.end(), [&, state = state](const proto::Node& node) {
            return of_role(node) && node.state() == state;
          });
      page.Gauge("covey_nodes", "Nodes of the view; dead ones and those that left stay listed.",
                 static_cast<double>(count), {{"role", role_name}, {"state", state_name}});
    }
    double draining = 0;
    double silent = 0;
    for (const proto::Node& node : nodes) {
      if (!of_role(node) || node.state() != proto::Node::ALIVE) continue;
      if (node.draining()) ++draining;
      const auto known = statuses.find(node.id());
      if (known == statuses.end()) continue;
      silent = std::max(silent, 1e-3 * static_cast<double>(known->second->silent_ms()));
    }
    page.Gauge("covey_nodes_draining", "Live nodes that were asked to leave.", draining,
               {{"role", role_name}});
    page.Gauge("covey_heartbeat_silence_max_seconds",
               "Time since the last heartbeat of the live node that has been silent for longest.",
               silent, {{"role", role_name}});
  }
}

void AddWorkers(const proto::StatusReply& status, MetricPage& page) {
  const auto& nodes = status.view().nodes();
  const auto standing_by = std::count_if(nodes.begin(), nodes.end(), [](const proto::Node& node) {
    return node.state() == proto::Node::ALIVE && !node.standby().empty();
  });
  page.Gauge("covey_workers_standing_by", "Live workers that are in no group.",
             static_cast<double>(standing_by));
  const auto& statuses = status.nodes();
  for (const auto& [pace, name] : kPaces) {
    const auto count = std::count_if(statuses.begin(), statuses.end(),
                                     [pace = pace](const proto::NodeStatus& node) {
                                       return node.has_pace() && node.pace().state() == pace;
                                     });
    page.Gauge("covey_workers_by_pace", "Computing workers, as the straggler ladder judges them.",
               static_cast<double>(count), {{"pace", name}});
  }
  const auto away = std::count_if(statuses.begin(), statuses.end(),
                                  [](const proto::NodeStatus& node) { return node.has_away(); });
  page.Gauge("covey_workers_away", "Workers whose program takes no steps on purpose.",
             static_cast<double>(away));
}

void AddGroup(const proto::Group& group, const NodeStatuses& statuses, LabelLimit& names,
              MetricPage& page) {
  const std::string name = names.LabelOf(absl::StrCat(group.id()));
  const MetricPage::Labels labels = {{"group", name}};
  page.Gauge("covey_group_members", "Members of a live group.", group.members_size(), labels);
  double rate = 0;
  double step = 0;
  double loss = 0;
  double staleness = 0;
  double compute = 0;
  double wait = 0;
  double slowest = 0;
  double reporting = 0;
  for (const uint64_t member : group.members()) {
    const auto known = statuses.find(member);
    if (known == statuses.end() || !known->second->has_progress()) continue;
    const proto::Progress& progress = known->second->progress();
    ++reporting;
    rate += progress.samples_per_second();
    if (progress.group() == group.id()) {
      step = std::max(step, static_cast<double>(progress.group_step()));
    }
    loss += progress.loss();
    staleness += progress.staleness();
    compute += progress.compute_seconds();
    wait += progress.wait_seconds();
    slowest = std::max(slowest, progress.slowest_seconds());
  }
  page.Gauge("covey_group_samples_per_second", "Training examples per second of a live group.",
             rate, labels);
  if (name == LabelLimit::kOther) return;  // the rest cannot be added up
  const double share = reporting == 0 ? 0 : 1 / reporting;
  page.Gauge("covey_group_step", "The newest step that a live group has finished.", step, labels);
  page.Gauge("covey_group_loss", "Loss per example, mean of the members' newest steps.",
             share * loss, labels);
  page.Gauge("covey_group_staleness_updates",
             "Updates by others between the values of a gradient and its application, mean.",
             share * staleness, labels);
  page.Gauge("covey_group_compute_seconds", "A member's own work in a step, mean of the members.",
             share * compute, labels);
  page.Gauge("covey_group_wait_seconds", "A member's waiting in a step, mean of the members.",
             share * wait, labels);
  page.Gauge("covey_group_slowest_compute_seconds",
             "A member's own work in its slowest step of the last second, the most of all members.",
             slowest, labels);
}

void AddGroups(const proto::StatusReply& status, MetricPage& page) {
  const auto& groups = status.view().groups();
  for (const auto& [state, name] : kGroupStates) {
    const auto count = std::count_if(
        groups.begin(), groups.end(),
        [state = state](const proto::Group& group) { return group.state() == state; });
    page.Gauge("covey_groups", "Groups of workers.", static_cast<double>(count), {{"state", name}});
  }
  const NodeStatuses statuses = StatusesOf(status);
  LabelLimit names(kGroupsNamed);
  for (const proto::Group& group : groups) {
    if (group.state() == proto::Group::ACTIVE) AddGroup(group, statuses, names, page);
  }
}

uint32_t WantedReplicas(const proto::TableSpec& spec) {
  if (spec.durability() == proto::MEMORY) return 1;
  return spec.replicas() == 0 ? 2 : spec.replicas();
}

void AddTables(const proto::ClusterView& view, MetricPage& page) {
  page.Gauge("covey_tables", "Tables of the job.", view.tables_size());
  LabelLimit names(kTablesNamed);
  for (const proto::Table& table : view.tables()) {
    double shorted = 0;
    double headless = 0;
    for (const proto::Shard& shard : table.shards()) {
      const auto full =
          std::count_if(shard.chain().begin(), shard.chain().end(),
                        [](const proto::Replica& replica) { return !replica.joining(); });
      if (full < WantedReplicas(table.spec())) ++shorted;
      if (full == 0) ++headless;
    }
    const MetricPage::Labels labels = {{"table", names.LabelOf(table.spec().name())}};
    page.Gauge("covey_shards", "Shards of a table.", table.shards_size(), labels);
    page.Gauge("covey_shards_short",
               "Shards that fewer servers hold as full members than the table asks for.", shorted,
               labels);
    page.Gauge("covey_shards_without_server", "Shards that no server serves.", headless, labels);
  }
}

void AddSnapshots(const proto::StatusReply& status, MetricPage& page) {
  for (const auto& [state, name] : kSnapshotStates) {
    const auto count = std::count_if(status.snapshots().begin(), status.snapshots().end(),
                                     [state = state](const proto::SnapshotStatus& snapshot) {
                                       return snapshot.state() == state;
                                     });
    page.Gauge("covey_snapshots", "The newest snapshots, as covey status lists them.",
               static_cast<double>(count), {{"state", name}});
  }
  const proto::AtRisk& at_risk = status.at_risk();
  page.Gauge("covey_updates_at_risk", "Updates that are in no complete snapshot.",
             static_cast<double>(at_risk.updates()));
  page.Gauge("covey_at_risk_seconds",
             "Time since the newest complete snapshot was cut; 0 = nothing is at risk.",
             1e-3 * static_cast<double>(at_risk.age_ms()));
  page.Gauge("covey_flush_is_behind", "1 while flushes do not keep their interval.",
             at_risk.flush_is_behind() ? 1 : 0);
}

}  // namespace

void SchedulerMetrics::AddTo(MetricPage& page) const {
  page.Gauge("covey_scheduler_leads", "1 for the scheduler that leads, 0 for one that stands by.",
             leads ? 1 : 0);
  page.Gauge("covey_view_epoch", "The epoch of the view that the process knows.",
             static_cast<double>(status.view().epoch()));
  page.Gauge("covey_nodes_expected", "Nodes that the scheduler's options ask for.",
             static_cast<double>(expected_servers), {{"role", "server"}});
  page.Gauge("covey_nodes_expected", "", static_cast<double>(expected_workers),
             {{"role", "worker"}});
  AddNodes(status, page);
  AddWorkers(status, page);
  AddGroups(status, page);
  AddTables(status.view(), page);
  AddSnapshots(status, page);
  page.Gauge("covey_quarantined_producers", "Producers whose pushes are not applied.",
             status.view().quarantined_size());
  constexpr char kDenied[] = "covey_denied_total";
  constexpr char kDeniedHelp[] =
      "Calls of the control plane that were refused: for the caller's certificate, or its rights.";
  page.Counter(kDenied, kDeniedHelp, static_cast<double>(denied_for_certificate),
               {{"reason", "certificate"}});
  page.Counter(kDenied, kDeniedHelp, static_cast<double>(denied_for_right), {{"reason", "right"}});
  page.Histogram("covey_log_write_seconds", "Time until a record of decisions is durable.",
                 log_writes);
  page.Histogram("covey_snapshot_part_seconds",
                 "From a snapshot's order until a shard of it is stored.", snapshot_parts);
  for (size_t number = 0; number < kCountedEvents; ++number) {
    const auto event = static_cast<CountedEvent>(number);
    page.Counter("covey_events_total", "Decisions of this scheduler since it leads.",
                 static_cast<double>(events.Of(event)),
                 {{"event", std::string(CountedEventName(event))}});
  }
}

}  // namespace covey::scheduler
