// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/status_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_table.h"
#include "client/cli/status/at_risk.h"
#include "client/cli/status/gate_view.h"
#include "client/cli/status/members_view.h"
#include "client/cli/status/replication.h"
#include "client/cli/status/tables_view.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

// Whether a later node has the same name.
bool IsReplaced(const proto::ClusterView& view, const proto::Node& node) {
  return std::any_of(view.nodes().begin(), view.nodes().end(), [&node](const proto::Node& other) {
    return other.id() > node.id() && other.name() == node.name();
  });
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

std::string HealthText(const proto::StatusReply& status) {
  const proto::ClusterView& view = status.view();
  const std::vector<std::string> problems = Problems(status);
  std::string text = absl::StrCat("job ", view.job_name(), ", epoch ", view.epoch(), ", up ",
                                  ShowSeconds(static_cast<double>(status.uptime_ms()) / 1000), ": ",
                                  problems.empty() ? "healthy" : "unhealthy", "\n");
  for (const std::string& problem : problems) absl::StrAppend(&text, "  ", problem, "\n");
  if (!view.waiting_for().empty()) {
    absl::StrAppend(&text, "  waiting for ", view.waiting_for(), "\n");
  }
  if (status.insecure()) {
    absl::StrAppend(&text,
                    "  INSECURE: everybody who reaches the scheduler is served; give it --tls\n");
  }
  if (const std::string durability = DurabilityLine(status.at_risk()); !durability.empty()) {
    absl::StrAppend(&text, "  ", durability, "\n");
  }
  for (const std::string& line : QuarantineLines(view)) absl::StrAppend(&text, "  ", line, "\n");
  return text;
}

std::string StatusText(const proto::StatusReply& status) {
  const proto::ClusterView& view = status.view();
  std::string text = HealthText(status);
  if (view.nodes_size() > 0) absl::StrAppend(&text, "\n", NodesText(status));
  if (const std::string workers = WorkersText(status); !workers.empty()) {
    absl::StrAppend(&text, "\n", workers);
  }
  if (view.groups_size() > 0) absl::StrAppend(&text, "\n", GroupsText(status));
  if (view.tables_size() > 0) absl::StrAppend(&text, "\n", TablesInUseText(status));
  if (const std::string gated = GatedText(status); !gated.empty()) {
    absl::StrAppend(&text, "\n", gated);
  }
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
  json["summary"]["quarantined"] = QuarantinedJson(status.view());
  json["summary"]["gated"] = GatedJson(status);
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
  return JsonText(json);
}

}  // namespace covey::cli
