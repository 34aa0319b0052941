#include "client/cli/status_view.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/figures.h"
#include "client/cli/group_progress.h"
#include "client/cli/text_table.h"
#include "common/base/check.h"
#include "common/cluster/contract.h"

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

std::string NodesText(const proto::StatusReply& status) {
  std::map<uint64_t, const proto::NodeStatus*> by_node;
  for (const proto::NodeStatus& node : status.nodes()) by_node[node.node()] = &node;
  // "0/1": group 0, rank 1 in it.
  std::map<uint64_t, std::string> places;
  for (const proto::Group& group : status.view().groups()) {
    for (int rank = 0; rank < group.members_size(); ++rank) {
      places[group.members(rank)] = absl::StrCat(group.id(), "/", rank);
    }
  }
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
               places.contains(node->id()) ? places[node->id()] : "-",
               absl::StrCat(node->process_id()), node->host(), node->labels(), node->departure()});
  }
  return table.Render();
}

std::string GroupsText(const proto::StatusReply& status) {
  TextTable table(
      {"GROUP", "STATE", "MEMBERS", "STEP", "SAMPLES", "SAMPLES/S", "LOSS", "STALENESS", "REASON"});
  for (const GroupProgress& group : ProgressOfGroups(status)) {
    const auto shown = [&](const std::string& text) { return group.started ? text : "-"; };
    table.Add({absl::StrCat(group.group), ShowState(group.state), absl::StrCat(group.members),
               shown(ShowCount(group.step)), shown(ShowCount(group.samples)),
               shown(ShowNumber(group.samples_per_second)), shown(ShowNumber(group.loss)),
               shown(ShowNumber(group.staleness)), group.reason});
  }
  return table.Render();
}

template <typename Tables>
std::string TablesOf(const Tables& tables) {
  TextTable text({"TABLE", "SHAPE", "CONTRACT", "OPTIMIZER", "SHARDS", "BYTES"});
  for (const proto::Table& table : tables) {
    uint64_t elements = 0;
    for (const proto::Shard& shard : table.shards()) elements += shard.element_count();
    const proto::Optimizer::Kind optimizer = table.spec().optimizer().kind();
    text.Add({table.spec().name(), absl::StrJoin(table.spec().shape(), "x"), ShowContract(table),
              absl::AsciiStrToLower(proto::Optimizer::Kind_Name(optimizer)),
              absl::StrCat(table.shards_size()), ShowBytes(elements * sizeof(float))});
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
    if (node.state() == proto::Node::DEAD) {
      problems.push_back(absl::StrCat(node.name(), " is dead: ", node.departure()));
    }
  }
  for (const proto::Group& group : status.view().groups()) {
    if (group.state() == proto::Group::BROKEN) {
      problems.push_back(absl::StrCat("group ", group.id(), " is broken: ", group.reason()));
    }
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
  if (view.groups_size() > 0) absl::StrAppend(&text, "\n", GroupsText(status));
  if (view.tables_size() > 0) absl::StrAppend(&text, "\n", TablesOf(view.tables()));
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
  return Dump(json);
}

std::string TablesText(const proto::ListTablesReply& tables) {
  if (tables.tables().empty()) return "no tables yet\n";
  return TablesOf(tables.tables());
}

std::string TablesJson(const proto::ListTablesReply& tables) { return Dump(ToJson(tables)); }

}  // namespace covey::cli
