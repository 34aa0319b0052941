// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/status_view.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"
#include "client/cli/status/group_progress.h"
#include "common/base/check.h"
#include "common/contract/contract.h"
#include "common/contract/momentum_governor.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  COVEY_CHECK(google::protobuf::util::MessageToJsonString(message, &text, options).ok());
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ShowContract(const proto::Table& table) {
  const absl::StatusOr<Contract> known = ContractInForce(table);
  return known.ok() ? ContractName(*known) : "unknown";
}

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

std::string NoteOn(const proto::Node& node) {
  if (!node.departure().empty()) return node.departure();
  return node.draining() ? "drains" : node.standby();
}

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
    const bool heard = found != by_node.end() && node->state() == proto::Node::ALIVE;
    table.Add({node->name(), absl::AsciiStrToLower(proto::Node::State_Name(node->state())),
               heard ? ShowSeconds(static_cast<double>(found->second->silent_ms()) / 1000) : "-",
               places[node->id()].Show(), absl::StrCat(node->process_id()), node->host(),
               node->labels(), NoteOn(*node)});
  }
  return table.Render();
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

// A table of the workers in training: speed, and whom they wait for. "" when there are none.
std::string WorkersText(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::Node*> nodes;
  for (const proto::Node& node : status.view().nodes()) nodes[node.id()] = &node;
  const std::map<uint64_t, Place> places = Places(status.view());
  TextTable table({"WORKER", "GROUP/RANK", "SHARE", "STEP", "SAMPLES/STEP", "COMPUTE", "WAIT",
                   "ASIDE", "SLOWNESS", "PACE"});
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
    const double slowness = worker.pace().slowness();
    table.Add({node->second->name(), place->second.Show(), ShowPercent(place->second.Share()),
               ShowCount(progress.step()), measured(ShowNumber(progress.samples_per_step())),
               measured(ShowTime(progress.compute_seconds())),
               measured(ShowTime(progress.wait_seconds())), ShowCount(progress.steps_aside()),
               slowness > 0 ? absl::StrFormat("%.2fx", slowness) : "-", ShowPace(worker.pace())});
  }
  return table.empty() ? "" : table.Render();
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

uint32_t WantedReplicas(const proto::TableSpec& spec) {
  if (spec.durability() == proto::MEMORY) return 1;
  return spec.replicas() == 0 ? 2 : spec.replicas();
}

// Servers that may hold replicas.
uint32_t ServersStaying(const proto::ClusterView& view) {
  return static_cast<uint32_t>(
      std::count_if(view.nodes().begin(), view.nodes().end(), [](const proto::Node& node) {
        return node.role() == proto::SERVER && node.state() == proto::Node::ALIVE &&
               !node.draining();
      }));
}

// The state of a table's replication.
struct Replication {
  // The replicas that each shard should have: fewer than the table asks for when there are fewer
  // servers.
  uint32_t target = 1;
  uint32_t wanted = 1;
  uint32_t shards = 0;
  // Shards that have fewer, and shards that have none at all.
  uint32_t short_of = 0;
  uint32_t without = 0;
  // Replicas that are being filled.
  uint32_t joining = 0;

  bool is_whole() const { return short_of == 0; }
  std::string Show() const {
    std::vector<std::string> parts;
    if (without > 0)
      parts.push_back(absl::StrCat(without, " of ", shards, " shards without a server"));
    if (short_of > without) {
      parts.push_back(absl::StrCat("degraded: ", short_of - without, " of ", shards,
                                   " shards short of replicas"));
    }
    if (joining > 0) parts.push_back(absl::StrCat(joining, " joining"));
    if (parts.empty()) parts.push_back("whole");
    if (target < wanted) parts.push_back("too few servers");
    return absl::StrJoin(parts, ", ");
  }
};

Replication ReplicationOf(const proto::Table& table, uint32_t servers) {
  Replication result;
  result.wanted = WantedReplicas(table.spec());
  result.target = std::max<uint32_t>(1, std::min(result.wanted, servers));
  for (const proto::Shard& shard : table.shards()) {
    uint32_t joined = 0;
    for (const proto::Replica& replica : shard.chain()) {
      ++(replica.joining() ? result.joining : joined);
    }
    ++result.shards;
    if (joined < result.target) ++result.short_of;
    if (joined == 0) ++result.without;
  }
  return result;
}

std::string ShowDurability(const proto::TableSpec& spec) {
  return WantedReplicas(spec) == 1 ? "memory" : absl::StrCat("replicated ", WantedReplicas(spec));
}

std::vector<std::string> TableCells(const proto::Table& table) {
  uint64_t elements = 0;
  for (const proto::Shard& shard : table.shards()) elements += shard.element_count();
  const proto::Optimizer::Kind optimizer = table.spec().optimizer().kind();
  return {table.spec().name(),
          absl::StrJoin(table.spec().shape(), "x"),
          table.has_contract()
              ? absl::StrCat(ShowContract(table), " since epoch ", table.contract_epoch())
              : ShowContract(table),
          absl::AsciiStrToLower(proto::Optimizer::Kind_Name(optimizer)),
          ShowDurability(table.spec()),
          absl::StrCat(table.shards_size()),
          ShowBytes(elements * sizeof(float))};
}

// "2", "1 to 2", including replicas that are being filled.
std::string ShowChains(const proto::Table& table) {
  int least = table.shards().empty() ? 0 : table.shards(0).chain_size();
  int most = least;
  for (const proto::Shard& shard : table.shards()) {
    least = std::min(least, shard.chain_size());
    most = std::max(most, shard.chain_size());
  }
  return least == most ? absl::StrCat(least) : absl::StrCat(least, " to ", most);
}

// Whether a later node has the same name.
bool IsReplaced(const proto::ClusterView& view, const proto::Node& node) {
  return std::any_of(view.nodes().begin(), view.nodes().end(), [&node](const proto::Node& other) {
    return other.id() > node.id() && other.name() == node.name();
  });
}

std::string TablesInUse(const proto::StatusReply& status) {
  TextTable text({"TABLE", "SHAPE", "CONTRACT", "OPTIMIZER", "DURABILITY", "SHARDS", "BYTES",
                  "REPLICAS", "UPDATES", "DISCARDED", "STALENESS", "MOMENTUM"});
  const uint32_t servers = ServersStaying(status.view());
  // Summed over the servers.
  AsynchronyByTable asynchrony;
  for (const proto::NodeStatus& node : status.nodes()) {
    for (const proto::TableAsynchrony& report : node.load().tables()) {
      AddAsynchrony(report, asynchrony);
    }
  }
  for (const proto::Table& table : status.view().tables()) {
    const proto::TableAsynchrony& use = asynchrony[table.id()];
    std::string momentum =
        absl::StrFormat("%.2f implicit + %.2f", use.implicit_momentum(), use.explicit_momentum());
    if (use.target_momentum() > 0) {
      absl::StrAppendFormat(&momentum, " of %.2f", use.target_momentum());
    }
    std::vector<std::string> cells = TableCells(table);
    cells.push_back(ReplicationOf(table, servers).Show());
    for (const std::string& cell : {ShowCount(use.updates()), ShowCount(use.discarded()),
                                    ShowNumber(use.staleness()), momentum}) {
      cells.push_back(use.updates() > 0 ? cell : "-");
    }
    text.Add(std::move(cells));
  }
  return text.Render();
}

int CountOf(const proto::StatusReply& status, proto::Node::State state) {
  return std::count_if(status.view().nodes().begin(), status.view().nodes().end(),
                       [state](const proto::Node& node) { return node.state() == state; });
}

int CountOf(const proto::StatusReply& status, proto::Group::State state) {
  return std::count_if(status.view().groups().begin(), status.view().groups().end(),
                       [state](const proto::Group& group) { return group.state() == state; });
}

}  // namespace

std::vector<std::string> Problems(const proto::StatusReply& status) {
  std::vector<std::string> problems;
  for (const proto::Node& node : status.view().nodes()) {
    if (node.state() == proto::Node::DEAD && !IsReplaced(status.view(), node)) {
      problems.push_back(absl::StrCat(node.name(), " is dead: ", node.departure()));
    }
  }
  for (const proto::Group& group : status.view().groups()) {
    if (group.state() == proto::Group::BROKEN) {
      problems.push_back(absl::StrCat("group ", group.id(), " is broken: ", group.reason()));
    }
  }
  const uint32_t servers = ServersStaying(status.view());
  for (const proto::Table& table : status.view().tables()) {
    const Replication replication = ReplicationOf(table, servers);
    if (replication.is_whole()) continue;
    problems.push_back(absl::StrCat("table '", table.spec().name(), "': ", replication.Show()));
  }
  return problems;
}

void KeepLastEvents(proto::StatusReply& status, size_t count) {
  const int extra = status.events_size() - static_cast<int>(count);
  if (extra > 0) status.mutable_events()->DeleteSubrange(0, extra);
}

std::string StatusText(const proto::StatusReply& status) {
  const proto::ClusterView& view = status.view();
  const std::vector<std::string> problems = Problems(status);
  std::string text = absl::StrCat("job ", view.job_name(), ", epoch ", view.epoch(), ", up ",
                                  ShowSeconds(static_cast<double>(status.uptime_ms()) / 1000), ": ",
                                  problems.empty() ? "healthy" : "unhealthy", "\n");
  for (const std::string& problem : problems) absl::StrAppend(&text, "  ", problem, "\n");
  if (!view.waiting_for().empty()) {
    absl::StrAppend(&text, "  waiting for ", view.waiting_for(), "\n");
  }
  if (view.nodes_size() > 0) absl::StrAppend(&text, "\n", NodesText(status));
  if (const std::string workers = WorkersText(status); !workers.empty()) {
    absl::StrAppend(&text, "\n", workers);
  }
  if (view.groups_size() > 0) absl::StrAppend(&text, "\n", GroupsText(status));
  if (view.tables_size() > 0) absl::StrAppend(&text, "\n", TablesInUse(status));
  if (status.events_size() > 0) {
    TextTable events({"AT", "EVENT"});
    for (const proto::Event& event : status.events()) {
      events.Add({ShowSeconds(static_cast<double>(event.at_ms()) / 1000), event.text()});
    }
    absl::StrAppend(&text, "\n", events.Render());
  }
  return text;
}

std::string StatusJson(const proto::StatusReply& status) {
  const std::vector<std::string> problems = Problems(status);
  Json json = ToJson(status);
  json["summary"] = {{"healthy", problems.empty()},
                     {"problems", problems},
                     {"alive", CountOf(status, proto::Node::ALIVE)},
                     {"dead", CountOf(status, proto::Node::DEAD)},
                     {"left", CountOf(status, proto::Node::LEFT)},
                     {"active_groups", CountOf(status, proto::Group::ACTIVE)},
                     {"broken_groups", CountOf(status, proto::Group::BROKEN)},
                     {"done_groups", CountOf(status, proto::Group::DONE)},
                     {"waiting_for", status.view().waiting_for()}};
  Json draining = Json::array();
  Json failures = Json::array();
  for (const proto::Node& node : status.view().nodes()) {
    if (node.draining() && node.state() == proto::Node::ALIVE) draining.push_back(node.name());
    if (node.state() != proto::Node::DEAD) continue;
    failures.push_back({{"node", node.name()},
                        {"reason", node.departure()},
                        {"replaced", IsReplaced(status.view(), node)}});
  }
  json["summary"]["draining"] = std::move(draining);
  json["summary"]["failures"] = std::move(failures);
  const uint32_t servers = ServersStaying(status.view());
  Json tables = Json::array();
  for (const proto::Table& table : status.view().tables()) {
    const Replication replication = ReplicationOf(table, servers);
    tables.push_back({{"table", table.spec().name()},
                      {"durability", ShowDurability(table.spec())},
                      {"replicas_wanted", replication.wanted},
                      {"shards", replication.shards},
                      {"shards_short", replication.short_of},
                      {"shards_nowhere", replication.without},
                      {"replicas_joining", replication.joining},
                      {"whole", replication.is_whole()}});
  }
  json["summary"]["replication"] = std::move(tables);
  return Dump(json);
}

std::string TablesText(const proto::ListTablesReply& tables) {
  if (tables.tables().empty()) return "no tables yet\n";
  TextTable text(
      {"TABLE", "SHAPE", "CONTRACT", "OPTIMIZER", "DURABILITY", "SHARDS", "BYTES", "REPLICAS"});
  for (const proto::Table& table : tables.tables()) {
    std::vector<std::string> cells = TableCells(table);
    cells.push_back(ShowChains(table));
    text.Add(std::move(cells));
  }
  return text.Render();
}

std::string TablesJson(const proto::ListTablesReply& tables) { return Dump(ToJson(tables)); }

}  // namespace covey::cli
