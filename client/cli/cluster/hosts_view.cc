// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/hosts_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_table.h"
#include "client/cli/scale/fleet_view.h"

namespace covey::cli {
namespace {

using State = ProcessReport::State;

std::string ShowState(const proto::Node& node) {
  switch (node.state()) {
    case proto::Node::ALIVE:
      return "alive";
    case proto::Node::DEAD:
      return "dead";
    case proto::Node::LEFT:
      return "left";
    default:
      return "";
  }
}

void ReadHost(const RemoteHosts::Answer* answer, HostsRow& row) {
  if (answer == nullptr || !answer->status.ok()) {
    row.state = "unreachable";
    if (answer != nullptr) row.note = std::string(answer->status.message());
    return;
  }
  const auto found = answer->report.processes.find(row.process);
  if (found == answer->report.processes.end() || found->second.state == State::kNone) {
    row.state = "not started";
    return;
  }
  if (found->second.IsAlive()) {
    row.state = "running";
    row.process_id = found->second.process_id;
    return;
  }
  row.state = "ended";
  if (!found->second.last_lines.empty()) row.note = found->second.last_lines.back();
}

void ReadJob(const PlannedProcess& process, const proto::ClusterView& view, HostsRow& row) {
  const proto::Node* const node = FindNewest(view, process.name);
  if (node == nullptr) return;
  row.in_job = ShowState(*node);
  if (row.state == "ended" && node->state() == proto::Node::LEFT) {
    row.state = "finished";
    row.note = "";
  }
  if (!node->departure().empty() && row.note.empty()) row.note = node->departure();
}

}  // namespace

std::vector<HostsRow> RowsOf(const ClusterFile& file, const std::vector<PlannedProcess>& processes,
                             const RemoteHosts::Answers& answers,
                             const absl::StatusOr<proto::StatusReply>& status) {
  std::map<size_t, const RemoteHosts::Answer*> by_host;
  for (const RemoteHosts::Answer& answer : answers) by_host[answer.host] = &answer;
  std::vector<HostsRow> rows;
  for (size_t host = 0; host < file.hosts.size(); ++host) {
    for (const PlannedProcess& each : processes) {
      if (each.host != host) continue;
      HostsRow row = {.host = file.hosts[host].name, .process = each.name};
      ReadHost(by_host[host], row);
      const bool is_scheduler = each.role == IdentityRole::kScheduler;
      if (is_scheduler && status.ok()) row.in_job = "alive";
      if (is_scheduler && !status.ok() && row.state == "running") {
        row.note = std::string(status.status().message());
      }
      if (!is_scheduler && status.ok()) ReadJob(each, status->view(), row);
      row.is_well = row.state == "finished" || (row.state == "running" && row.in_job == "alive");
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string HostsText(const std::vector<HostsRow>& rows) {
  TextTable table({"HOST", "PROCESS", "PID", "STATE", "IN JOB", "NOTE"});
  for (const HostsRow& row : rows) {
    table.Add({row.host, row.process, row.process_id == 0 ? "-" : absl::StrCat(row.process_id),
               row.state, row.in_job.empty() ? "-" : row.in_job, row.note});
  }
  return table.Render();
}

std::string HostsJson(const std::vector<HostsRow>& rows) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const HostsRow& row : rows) {
    all.push_back({{"host", row.host},
                   {"process", row.process},
                   {"process_id", row.process_id},
                   {"state", row.state},
                   {"in_job", row.in_job},
                   {"note", row.note},
                   {"is_well", row.is_well}});
  }
  return JsonText({{"processes", all}});
}

}  // namespace covey::cli
