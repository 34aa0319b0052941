#include "client/cli/run_result.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/figures.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Result(const RunOptions& options, const RunOutcome& outcome) {
  Json json = Json::parse(outcome.result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) json = Json::object();
  json["servers"] = options.servers;
  json["groups"] = options.groups;
  json["workers"] = options.workers();
  json["wall_seconds"] = std::round(absl::ToDoubleSeconds(outcome.wall) * 1000) / 1000;
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

std::string Plural(uint32_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

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
                        {"wait_seconds", point.wait_seconds}});
    }
    json["history"].push_back({{"group", group.group}, {"points", std::move(points)}});
  }
  json["events"] = Json::array();
  for (const HistoryEvent& event : outcome.history.events()) {
    json["events"].push_back({{"seconds", event.seconds}, {"text", event.text}});
  }
  return Dump(json, 1) + "\n";
}

Report MakeReport(const RunOptions& options, const RunOutcome& outcome, absl::string_view date) {
  Report report;
  report.title = absl::StrCat(FileName(options.program[0]), " in ", Plural(options.groups, "group"),
                              " of ", Plural(options.workers_per_group, "worker"));
  report.failed = !outcome.status.ok();
  report.outcome = absl::StrCat(report.failed ? "Failed after " : "Finished in ",
                                ShowSeconds(absl::ToDoubleSeconds(outcome.wall)),
                                report.failed ? ": " : "", outcome.status.message());
  const Json result = Result(options, outcome);
  for (const auto& [name, value] : result.items()) {
    report.result.emplace_back(name, ShowValue(value));
  }
  report.configuration = {
      {"ended", std::string(date)},
      {"program", absl::StrJoin(options.program, " ")},
      {"job", options.job},
      {"servers", options.server_loops == 0
                      ? absl::StrCat(options.servers)
                      : absl::StrCat(options.servers, " with ",
                                     Plural(options.server_loops, "data loop"), " each")},
      {"groups", absl::StrCat(options.groups)},
      {"workers per group", absl::StrCat(options.workers_per_group)},
      {"transport", options.transport},
  };
  report.history = outcome.history;
  return report;
}

}  // namespace covey::cli
