// SPDX-License-Identifier: Apache-2.0
#include "client/cli/doctor/findings_view.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/json_text.h"

namespace covey::cli {
namespace {

using Level = Finding::Level;

const char* NameOf(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warn";
    case Level::kFailure:
      return "fail";
    case Level::kSkipped:
      return "skip";
  }
  return "";
}

int64_t CountOf(const Findings& findings, Level level) {
  return std::count_if(findings.begin(), findings.end(),
                       [level](const Finding& finding) { return finding.level == level; });
}

}  // namespace

std::string FindingsText(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppendFormat(&text, "%-4s  %-12s  %s%s\n", NameOf(finding.level), finding.check,
                          finding.seen,
                          finding.remedy.empty() ? "" : absl::StrCat("; ", finding.remedy));
  }
  return absl::StrCat(text, CountOf(findings, Level::kFailure), " fail, ",
                      CountOf(findings, Level::kWarning), " warn, ", CountOf(findings, Level::kOk),
                      " ok\n");
}

std::string FindingsJson(const Findings& findings) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"level", NameOf(finding.level)},
                   {"check", finding.check},
                   {"seen", finding.seen},
                   {"remedy", finding.remedy}});
  }
  return JsonText({{"findings", all},
                   {"warnings", CountOf(findings, Level::kWarning)},
                   {"failures", CountOf(findings, Level::kFailure)}});
}

bool HasFailure(const Findings& findings) { return CountOf(findings, Level::kFailure) > 0; }

}  // namespace covey::cli
