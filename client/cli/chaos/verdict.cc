// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/verdict.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_table.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Show(double value, const std::string& unit) {
  const std::string number = std::isfinite(value) ? ShowNumber(value) : "never";
  return unit.empty() || !std::isfinite(value) ? number : absl::StrCat(number, " ", unit);
}

}  // namespace

bool Promise::kept() const {
  // NaN is no measurement, and keeps no promise.
  return side == Side::kAtMost ? measured <= bound : measured >= bound;
}

bool Verdict::kept() const {
  return !promises.empty() && std::all_of(promises.begin(), promises.end(),
                                          [](const Promise& promise) { return promise.kept(); });
}

std::string VerdictText(const Verdict& verdict) {
  TextTable table({"PROMISE", "MEASURED", "BOUND", "VERDICT"});
  for (const Promise& promise : verdict.promises) {
    const char* const side = promise.side == Promise::Side::kAtMost ? "<= " : ">= ";
    table.Add({promise.what, Show(promise.measured, promise.unit),
               absl::StrCat(side, Show(promise.bound, promise.unit)),
               promise.kept() ? "kept" : "BROKEN"});
  }
  std::string text = absl::StrCat("chaos ", verdict.experiment, ": ", verdict.setting, "\n\n",
                                  table.Render(), "\n");
  for (const auto& [name, value] : verdict.notes) absl::StrAppend(&text, name, ": ", value, "\n");
  return absl::StrCat(text, verdict.kept() ? "all promises kept\n" : "a promise was broken\n");
}

std::string VerdictJson(const Verdict& verdict) {
  Json promises = Json::array();
  for (const Promise& promise : verdict.promises) {
    promises.push_back(
        {{"what", promise.what},
         // JSON has no infinity.
         {"measured", std::isfinite(promise.measured) ? Json(promise.measured) : Json(nullptr)},
         {"bound", promise.bound},
         {"side", promise.side == Promise::Side::kAtMost ? "at most" : "at least"},
         {"unit", promise.unit},
         {"kept", promise.kept()}});
  }
  Json notes = Json::object();
  for (const auto& [name, value] : verdict.notes) notes[name] = value;
  const Json json = {{"experiment", verdict.experiment},
                     {"setting", verdict.setting},
                     {"promises", std::move(promises)},
                     {"notes", std::move(notes)},
                     {"kept", verdict.kept()}};
  return JsonText(json);
}

}  // namespace covey::cli
