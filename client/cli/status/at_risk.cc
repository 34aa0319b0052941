// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/at_risk.h"

#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"

namespace covey::cli {

std::string ShowAtRisk(const proto::AtRisk& at_risk) {
  if (at_risk.updates() == 0) return "no update";
  const std::string updates =
      absl::StrCat(ShowCount(at_risk.updates()), at_risk.updates() == 1 ? " update" : " updates");
  if (at_risk.snapshot().empty()) return absl::StrCat("all ", updates);
  return absl::StrCat(updates, " of the last ",
                      ShowSeconds(static_cast<double>(at_risk.age_ms()) / 1000));
}

std::string DurabilityLine(const proto::AtRisk& at_risk) {
  if (at_risk.durability().empty()) return "";
  return absl::StrCat("durability ", at_risk.durability(), ": if all servers failed now, ",
                      ShowAtRisk(at_risk), " would be lost",
                      at_risk.flush_is_behind() ? "; flushes are behind their interval" : "");
}

}  // namespace covey::cli
