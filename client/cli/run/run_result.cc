// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_result.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"
#include "client/step_times.h"
#include "common/base/plural.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

Json StepTimesJson(const client::StepTimes& times) {
  const auto seconds = [](double value) { return std::round(value * 1e9) / 1e9; };
  return {{"step_seconds", seconds(times.total())},
          {"computation_seconds", seconds(times.computation)},
          {"input_seconds", seconds(times.input)},
          {"group_seconds", seconds(times.group)},
          {"servers_seconds", seconds(times.servers)}};
}

Json Result(const RunOptions& options, const RunOutcome& outcome) {
  Json json = Json::parse(outcome.result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) json = Json::object();
  json["servers"] = options.servers;
  if (options.plans_groups) {
    json["groups"] = options.Groups();
  } else {
    json["groups"] = options.groups;
  }
  json["workers"] = options.workers();
  json["wall_seconds"] = std::round(absl::ToDoubleSeconds(outcome.wall) * 1000) / 1000;
  if (const client::StepTimes times = outcome.history.MeanStepTimes(); times.total() > 0) {
    json["step_times"] = StepTimesJson(times);
    json["step_times"]["bottleneck"] = client::BottleneckOf(times);
  }
  const RunLosses& losses = outcome.incidents.losses();
  if (!losses.none()) {
    json["losses"] = {{"died", losses.died},
                      {"drained", losses.drained},
                      {"failovers", losses.failovers},
                      {"failover_seconds", losses.failover_seconds},
                      {"shards_moved", losses.moved},
                      {"shards_lost", losses.lost},
                      {"recoveries", losses.recoveries},
                      {"recovery_seconds", losses.recovery_seconds}};
  }
  return json;
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string ShowValue(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return ShowCount(value.get<uint64_t>());
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return std::abs(number) < 1000 ? absl::StrFormat("%.4g", number) : ShowNumber(number);
  }
  return Dump(value, -1);
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string ResultLine(const RunOptions& options, const RunOutcome& outcome) {
  return Dump(Result(options, outcome), -1);
}

std::string ResultFile(const RunOptions& options, const RunOutcome& outcome) {
  Json json = Result(options, outcome);
  if (!outcome.status.ok()) json["error"] = std::string(outcome.status.message());
  json["history"] = Json::array();
  for (const GroupHistory& group : outcome.history.groups()) {
    Json points = Json::array();
    for (const HistoryPoint& point : group.points) {
      points.push_back({{"seconds", point.seconds},
                        {"step", point.step},
                        {"samples", point.samples},
                        {"samples_per_second", point.samples_per_second},
                        {"loss", point.loss},
                        {"staleness", point.staleness},
                        {"steps_aside", point.steps_aside},
                        {"compute_seconds", point.compute_seconds},
                        {"wait_seconds", point.wait_seconds},
                        {"step_times", StepTimesJson(point.step_times)}});
    }
    json["history"].push_back({{"group", group.group}, {"points", std::move(points)}});
  }
  json["events"] = Json::array();
  for (const HistoryEvent& event : outcome.history.events()) {
    json["events"].push_back({{"seconds", event.seconds}, {"text", event.text}});
  }
  json["incidents"] = Json::array();
  for (const Incident& incident : outcome.incidents.incidents()) {
    json["incidents"].push_back(
        {{"seconds", incident.seconds}, {"node", incident.node}, {"what", incident.what}});
  }
  return Dump(json, 1) + "\n";
}

std::string StepLine(const RunOutcome& outcome) {
  const client::StepTimes times = outcome.history.MeanStepTimes();
  return times.total() > 0 ? client::DescribeStep(times) : outcome.step_sentence;
}

std::string TargetLine(const RunOutcome& outcome) {
  const Json json = Json::parse(outcome.result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("samples_to_target") ||
      !json.contains("seconds_to_target")) {
    return "";
  }
  const Json& samples = json["samples_to_target"];
  const Json& seconds = json["seconds_to_target"];
  if (!samples.is_number_unsigned() || !seconds.is_number()) return "the target was not reached";
  return absl::StrCat("the target was reached after ", ShowCount(samples.get<uint64_t>()),
                      " samples, in ", ShowSeconds(seconds.get<double>()));
}

std::vector<std::string> LossLines(const RunOutcome& outcome) {
  const RunLosses& losses = outcome.incidents.losses();
  std::vector<std::string> lines;
  if (losses.none()) return lines;
  lines.push_back(absl::StrCat("incidents of this run:"));
  for (const Incident& incident : outcome.incidents.incidents()) {
    lines.push_back(absl::StrCat("  at ", ShowSeconds(incident.seconds), ": ", incident.node, " ",
                                 incident.what));
  }
  lines.push_back(absl::StrCat("in all: ", losses.died, " died, ", losses.drained, " drained, ",
                               Plural(losses.failovers, "shard"), " failed over, ", losses.moved,
                               " moved, ", losses.lost, " lost, ",
                               Plural(losses.recoveries, "step"), " retried"));
  return lines;
}

Report MakeReport(const RunOptions& options, const RunOutcome& outcome, absl::string_view date) {
  Report report;
  const std::string workers = Plural(options.workers_per_group, "worker");
  report.title =
      absl::StrCat(FileName(options.program[0]),
                   options.plans_groups
                       ? absl::StrCat(" with ", workers, " in planned groups")
                       : absl::StrCat(" in ", Plural(options.groups, "group"), " of ", workers));
  report.failed = !outcome.status.ok();
  report.outcome = absl::StrCat(report.failed ? "Failed after " : "Finished in ",
                                ShowSeconds(absl::ToDoubleSeconds(outcome.wall)),
                                report.failed ? ": " : "", outcome.status.message());
  const Json result = Result(options, outcome);
  for (const auto& [name, value] : result.items()) {
    if (!value.is_object()) {
      report.result.emplace_back(name, ShowValue(value));
      continue;
    }
    for (const auto& [part, number] : value.items()) {
      report.result.emplace_back(part, ShowValue(number));
    }
  }
  report.configuration = {
      {"ended", std::string(date)},
      {"program", absl::StrJoin(options.program, " ")},
      {"job", options.job},
      {"servers", options.server_loops == 0
                      ? absl::StrCat(options.servers)
                      : absl::StrCat(options.servers, " with ",
                                     Plural(options.server_loops, "data loop"), " each")},
      {"groups", options.Groups()},
      {options.plans_groups ? "workers" : "workers per group",
       absl::StrCat(options.workers_per_group)},
      {"transport", options.transport},
  };
  for (const Incident& incident : outcome.incidents.incidents()) {
    report.incidents.emplace_back(
        absl::StrCat(incident.node, " at ", ShowSeconds(incident.seconds)), incident.what);
  }
  report.history = outcome.history;
  return report;
}

}  // namespace covey::cli
