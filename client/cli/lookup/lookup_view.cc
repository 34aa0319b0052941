// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lookup/lookup_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"

namespace covey::cli {
namespace {

std::span<const float> RowOf(const LookedUpRows& rows, size_t i) {
  return std::span(rows.values).subspan(i * rows.width, rows.width);
}

}  // namespace

std::string LookupText(const LookedUpRows& rows) {
  const size_t shown = std::min(rows.width, kColumnsShown);
  std::vector<std::string> heads = {"KEY"};
  for (size_t column = 0; column < shown; ++column) heads.push_back(absl::StrCat(column));
  if (rows.width > shown) heads.push_back(absl::StrCat("OF ", rows.width));
  TextTable table(heads);
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    std::vector<std::string> cells = {absl::StrCat(rows.keys[i])};
    for (const float value : RowOf(rows, i).first(shown)) {
      cells.push_back(absl::StrFormat("%.6g", value));
    }
    if (rows.width > shown) cells.push_back("...");
    table.Add(std::move(cells));
  }
  return absl::StrCat(table.Render(), "table ", rows.table, ", version ", rows.version,
                      ", updated ", ShowSeconds(rows.age_seconds),
                      " ago; a row that no push has made yet shows its first values\n");
}

std::string LookupJson(const LookedUpRows& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    list.push_back({{"key", absl::StrCat(rows.keys[i])}, {"values", RowOf(rows, i)}});
  }
  const nlohmann::ordered_json json = {{"table", rows.table},
                                       {"width", rows.width},
                                       {"version", rows.version},
                                       {"age_seconds", rows.age_seconds},
                                       {"rows", std::move(list)}};
  return absl::StrCat(json.dump(2), "\n");
}

}  // namespace covey::cli
