// SPDX-License-Identifier: Apache-2.0
#include "client/cli/dashboard/state_json.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/table_shape.h"
#include "client/cli/status/at_risk.h"
#include "client/cli/status/gate_view.h"
#include "client/cli/status/group_progress.h"
#include "client/cli/status/replication.h"
#include "client/cli/status/status_view.h"
#include "common/contract/contract.h"
#include "common/contract/momentum_governor.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Lower(const std::string& name) { return absl::AsciiStrToLower(name); }

Json TimesJson(const client::StepTimes& times) {
  return {{"input", times.input},
          {"computation", times.computation},
          {"group", times.group},
          {"servers", times.servers}};
}

std::string NoteOn(const proto::Node& node, const proto::NodeStatus& known) {
  if (!node.departure().empty()) return node.departure();
  if (node.draining()) return "drains";
  return known.has_away() ? absl::StrCat("away: ", known.away().reason()) : node.standby();
}

Json NodeJson(const proto::Node& node, const proto::NodeStatus& known) {
  Json json = {{"id", node.id()},
               {"name", node.name()},
               {"role", Lower(proto::Role_Name(node.role()))},
               {"state", Lower(proto::Node::State_Name(node.state()))},
               {"silent_ms", known.silent_ms()},
               {"host", node.host()},
               {"process", node.process_id()},
               {"labels", node.labels()},
               {"note", NoteOn(node, known)}};
  if (known.has_progress()) {
    const proto::Progress& progress = known.progress();
    json["step"] = progress.step();
    json["samples_per_second"] = progress.samples_per_second();
    json["times"] = TimesJson(StepTimesOf(progress));
    json["aside"] = progress.steps_aside();
  }
  if (known.has_pace()) {
    json["slowness"] = known.pace().slowness();
    json["seconds_per_sample"] = known.pace().seconds_per_sample();
    json["pace"] = Lower(proto::Pace::State_Name(known.pace().state()));
  }
  if (known.has_load()) {
    json["bytes"] = known.load().table_bytes();
    json["queued_bytes"] = known.load().queued_bytes();
    json["refused"] = known.load().refused();
  }
  return json;
}

Json NodesJson(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::NodeStatus*> by_node;
  for (const proto::NodeStatus& node : status.nodes()) by_node[node.node()] = &node;
  const proto::NodeStatus unknown;
  Json json = Json::array();
  for (const proto::Node& node : status.view().nodes()) {
    const auto found = by_node.find(node.id());
    json.push_back(NodeJson(node, found == by_node.end() ? unknown : *found->second));
  }
  return json;
}

Json GroupsJson(const proto::StatusReply& status) {
  Json json = Json::array();
  int index = 0;
  for (const GroupProgress& group : ProgressOfGroups(status)) {
    const proto::Group& view = status.view().groups(index++);
    json.push_back(
        {{"id", group.group},
         {"state", ShowState(group.state)},
         {"reason", group.reason},
         {"generation", group.generation},
         {"members", std::vector<uint64_t>(view.members().begin(), view.members().end())},
         {"shares", std::vector<uint32_t>(view.shares().begin(), view.shares().end())},
         {"minimum_members", view.minimum_members()},
         {"grace_ms", view.grace_ms()},
         {"started", group.started},
         {"step", group.step},
         {"samples", group.samples},
         {"samples_per_second", group.samples_per_second},
         {"loss", group.loss},
         {"staleness", group.staleness},
         {"stragglers", group.stragglers},
         {"times", TimesJson(group.step_times)}});
  }
  return json;
}

// Each shard is its chain, head first: node, and 1 for a replica that is being filled.
Json ChainsJson(const proto::Table& table) {
  Json json = Json::array();
  for (const proto::Shard& shard : table.shards()) {
    Json chain = Json::array();
    for (const proto::Replica& replica : shard.chain()) {
      chain.push_back({replica.node(), replica.joining() ? 1 : 0});
    }
    json.push_back(std::move(chain));
  }
  return json;
}

Json TablesJson(const proto::StatusReply& status) {
  AsynchronyByTable asynchrony;
  for (const proto::NodeStatus& node : status.nodes()) {
    for (const proto::TableAsynchrony& report : node.load().tables()) {
      AddAsynchrony(report, asynchrony);
    }
  }
  const uint32_t servers = ServersStaying(status.view());
  Json json = Json::array();
  for (const proto::Table& table : status.view().tables()) {
    const proto::TableAsynchrony& use = asynchrony[table.id()];
    const Replication replication = ReplicationOf(table, servers);
    const absl::StatusOr<Contract> contract = ContractInForce(table);
    Json entry = {
        {"name", table.spec().name()},
        {"shape", ShowShape(table.spec())},
        {"contract", contract.ok() ? ContractName(*contract) : "unknown"},
        {"contract_epoch", table.contract_epoch()},
        {"optimizer", Lower(proto::Optimizer::Kind_Name(table.spec().optimizer().kind()))},
        {"durability", ShowDurability(table.spec())},
        {"replication", replication.Show()},
        {"whole", replication.is_whole()},
        {"replicas", replication.target},
        {"updates", use.updates()},
        {"discarded", use.discarded()},
        {"staleness", use.staleness()},
        {"implicit_momentum", use.implicit_momentum()},
        {"explicit_momentum", use.explicit_momentum()},
        {"target_momentum", use.target_momentum()},
        {"shards", ChainsJson(table)}};
    if (contract.ok() && contract->kind == Contract::Kind::kBsp) entry["bound"] = 0;
    if (contract.ok() && contract->kind == Contract::Kind::kSsp) {
      entry["bound"] = contract->staleness;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

Json SnapshotsJson(const proto::StatusReply& status) {
  Json json = Json::array();
  for (const proto::SnapshotStatus& each : status.snapshots()) {
    json.push_back({{"id", each.id()},
                    {"folder", each.folder()},
                    {"state", Lower(proto::SnapshotStatus::State_Name(each.state()))},
                    {"reason", each.reason()},
                    {"bytes", each.bytes()},
                    {"reused_bytes", each.reused_bytes()},
                    {"shards_written", each.shards_written()},
                    {"shards", each.shards()},
                    {"took_ms", each.took_ms()}});
  }
  return json;
}

}  // namespace

Json DashboardJson(const proto::StatusReply& status) {
  const std::vector<std::string> problems = Problems(status);
  return {{"job", status.view().job_name()},
          {"epoch", status.view().epoch()},
          {"uptime_ms", status.uptime_ms()},
          {"healthy", problems.empty()},
          {"problems", problems},
          {"waiting_for", status.view().waiting_for()},
          {"insecure", status.insecure()},
          {"durability", DurabilityLine(status.at_risk())},
          {"at_risk", status.at_risk().updates()},
          {"quarantined", QuarantineLines(status.view())},
          {"nodes", NodesJson(status)},
          {"groups", GroupsJson(status)},
          {"tables", TablesJson(status)},
          {"snapshots", SnapshotsJson(status)}};
}

}  // namespace covey::cli
