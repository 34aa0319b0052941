// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/figure.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/bench/measure/json_fields.h"
#include "client/cli/bench/measure/statistics.h"
#include "client/cli/console/text_table.h"

namespace covey::cli {
namespace {

using nlohmann::ordered_json;

ordered_json CostAsJson(const Cost& cost) {
  return {{"user_core_seconds_per_gb", cost.user_core_seconds_per_gb},
          {"system_core_seconds_per_gb", cost.system_core_seconds_per_gb},
          {"context_switches_per_operation", cost.context_switches_per_operation},
          {"page_faults_per_operation", cost.page_faults_per_operation},
          {"client_pss_bytes", cost.client_pss_bytes},
          {"server_pss_bytes", cost.server_pss_bytes}};
}

Cost CostFromJson(const nlohmann::json& cost) {
  return {.user_core_seconds_per_gb = NumberIn(cost, "user_core_seconds_per_gb"),
          .system_core_seconds_per_gb = NumberIn(cost, "system_core_seconds_per_gb"),
          .context_switches_per_operation = NumberIn(cost, "context_switches_per_operation"),
          .page_faults_per_operation = NumberIn(cost, "page_faults_per_operation"),
          .client_pss_bytes = CountIn(cost, "client_pss_bytes"),
          .server_pss_bytes = CountIn(cost, "server_pss_bytes")};
}

// Nothing when it has no repetitions, or one that is no number.
std::optional<Figure> FigureFromJson(const nlohmann::json& row) {
  if (!row.is_object() || !row.contains("repetitions")) return std::nullopt;
  Figure figure{.what = TextIn(row, "what"),
                .transport = TextIn(row, "transport"),
                .bytes = CountIn(row, "bytes"),
                .unit = TextIn(row, "unit"),
                .repetitions = {},
                .limits = TextsIn(row, "limits"),
                .cost = std::nullopt,
                .foreign_shares = NumbersIn(row, "foreign_shares"),
                .steal_shares = NumbersIn(row, "steal_shares")};
  const nlohmann::json& repetitions = row["repetitions"];
  if (!repetitions.is_array() || repetitions.empty()) return std::nullopt;
  for (const nlohmann::json& repetition : repetitions) {
    if (!repetition.is_number()) return std::nullopt;
    figure.repetitions.push_back(repetition.get<double>());
  }
  if (row.contains("cost") && row["cost"].is_object()) figure.cost = CostFromJson(row["cost"]);
  return figure;
}

std::string Range(const Figure& figure) {
  return absl::StrFormat("(%.3f..%.3f)", figure.Smallest(), figure.Largest());
}

// "0.71 (0.68..0.75) of raw socket".
std::string RatioAsText(const LimitRatio& ratio) {
  return absl::StrFormat("%.2f (%.2f..%.2f) of %s", ratio.median, ratio.low, ratio.high,
                         ratio.limit);
}

std::string CoreSecondsAsText(const Figure& figure) {
  if (!figure.cost.has_value() || figure.unit != "GB/s") return "";
  return absl::StrFormat(
      "%.2f", figure.cost->user_core_seconds_per_gb + figure.cost->system_core_seconds_per_gb);
}

}  // namespace

double Figure::Median() const { return Quantile(repetitions, 0.5); }
double Figure::Smallest() const { return Quantile(repetitions, 0); }
double Figure::Largest() const { return Quantile(repetitions, 1); }

std::vector<LimitRatio> RatiosOf(const Figure& figure, const std::vector<Figure>& figures) {
  std::vector<LimitRatio> ratios;
  for (const std::string& limit : figure.limits) {
    const auto found = std::find_if(figures.begin(), figures.end(), [&](const Figure& other) {
      return other.what == limit && other.transport == figure.transport &&
             other.bytes == figure.bytes;
    });
    if (found == figures.end() || found->Smallest() <= 0) continue;
    const std::vector<double> values = RatioPerRepetition(figure.repetitions, found->repetitions);
    const Interval interval = MedianInterval(values);
    ratios.push_back({.limit = limit,
                      .median = Quantile(values, 0.5),
                      .low = interval.low,
                      .high = interval.high});
  }
  return ratios;
}

std::string FiguresAsJson(const std::vector<Figure>& figures) {
  ordered_json rows = ordered_json::array();
  for (const Figure& figure : figures) {
    ordered_json row = {
        {"what", figure.what},     {"transport", figure.transport},     {"bytes", figure.bytes},
        {"unit", figure.unit},     {"median", figure.Median()},         {"min", figure.Smallest()},
        {"max", figure.Largest()}, {"repetitions", figure.repetitions}, {"limits", figure.limits}};
    row["foreign_shares"] = figure.foreign_shares;
    row["steal_shares"] = figure.steal_shares;
    ordered_json ratios = ordered_json::array();
    for (const LimitRatio& ratio : RatiosOf(figure, figures)) {
      ratios.push_back({{"limit", ratio.limit},
                        {"median", ratio.median},
                        {"low", ratio.low},
                        {"high", ratio.high}});
    }
    row["ratios"] = std::move(ratios);
    if (figure.cost.has_value()) row["cost"] = CostAsJson(*figure.cost);
    rows.push_back(std::move(row));
  }
  return rows.dump();
}

absl::StatusOr<std::vector<Figure>> FiguresFromJson(const std::string& text) {
  const absl::Status bad = absl::InvalidArgumentError("not figures of covey bench");
  const nlohmann::json rows = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array()) return bad;
  std::vector<Figure> figures;
  for (const nlohmann::json& row : rows) {
    std::optional<Figure> figure = FigureFromJson(row);
    if (!figure.has_value()) return bad;
    figures.push_back(*std::move(figure));
  }
  return figures;
}

std::string FigureAsLine(const Figure& figure) {
  return absl::StrFormat("%-28s %-9s %10d %10.3f %22s  %s", figure.what, figure.transport,
                         figure.bytes, figure.Median(), Range(figure), figure.unit);
}

std::string FiguresAsTable(const std::vector<Figure>& figures) {
  TextTable table({"what", "transport", "bytes", "median", "(min..max)", "unit", "core-s/GB",
                   "limits in the same repetitions"});
  for (const Figure& figure : figures) {
    table.Add({figure.what, figure.transport, absl::StrCat(figure.bytes),
               absl::StrFormat("%.3f", figure.Median()), Range(figure), figure.unit,
               CoreSecondsAsText(figure),
               absl::StrJoin(
                   RatiosOf(figure, figures), "; ",
                   [](std::string* out, const LimitRatio& ratio) { *out += RatioAsText(ratio); })});
  }
  return table.Render();
}

}  // namespace covey::cli
