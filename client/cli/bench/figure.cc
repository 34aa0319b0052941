// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/figure.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace covey::cli {

double Quantile(std::vector<double> values, double fraction) {
  COVEY_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(std::lround(position))];
}

double Figure::Median() const { return Quantile(repetitions, 0.5); }
double Figure::Smallest() const { return Quantile(repetitions, 0); }
double Figure::Largest() const { return Quantile(repetitions, 1); }

std::string FiguresAsJson(const std::vector<Figure>& figures) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Figure& figure : figures) {
    rows.push_back({{"what", figure.what},
                    {"transport", figure.transport},
                    {"bytes", figure.bytes},
                    {"unit", figure.unit},
                    {"median", figure.Median()},
                    {"min", figure.Smallest()},
                    {"max", figure.Largest()},
                    {"repetitions", figure.repetitions}});
  }
  return rows.dump();
}

absl::StatusOr<std::vector<Figure>> FiguresFromJson(const std::string& text) {
  const absl::Status bad = absl::InvalidArgumentError("not figures of covey bench");
  const nlohmann::json rows = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array()) return bad;
  std::vector<Figure> figures;
  for (const nlohmann::json& row : rows) {
    if (!row.is_object() || !row.contains("repetitions") || !row["repetitions"].is_array() ||
        row["repetitions"].empty()) {
      return bad;
    }
    Figure figure{.what = row.value("what", ""),
                  .transport = row.value("transport", ""),
                  .bytes = row.value("bytes", uint64_t{0}),
                  .unit = row.value("unit", "")};
    for (const nlohmann::json& repetition : row["repetitions"]) {
      if (!repetition.is_number()) return bad;
      figure.repetitions.push_back(repetition.get<double>());
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::string FigureAsLine(const Figure& figure) {
  return absl::StrFormat("%-24s %-9s %10d %10.3f %22s  %s", figure.what, figure.transport,
                         figure.bytes, figure.Median(),
                         absl::StrFormat("(%.3f..%.3f)", figure.Smallest(), figure.Largest()),
                         figure.unit);
}

std::string FiguresAsTable(const std::vector<Figure>& figures) {
  std::string table = absl::StrFormat("%-24s %-9s %10s %10s %22s  %s\n", "what", "transport",
                                      "bytes", "median", "(min..max)", "unit");
  for (const Figure& figure : figures) absl::StrAppend(&table, FigureAsLine(figure), "\n");
  return table;
}

}  // namespace covey::cli
