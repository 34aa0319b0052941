// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/ledger_promises.h"

#include "absl/status/statusor.h"
#include "client/cli/console/figures.h"
#include "common/base/status_macros.h"

namespace covey::cli {

absl::Status AddLedgerPromises(LedgerLoad& load, Verdict& verdict) {
  COVEY_RETURN_IF_ERROR(load.Finish());
  COVEY_ASSIGN_OR_RETURN(const LedgerLoad::Audit audit, load.Check());
  verdict.promises.push_back(
      {.what = "acknowledged updates lost", .measured = static_cast<double>(audit.lost)});
  verdict.promises.push_back(
      {.what = "updates applied twice", .measured = static_cast<double>(audit.doubled)});
  verdict.promises.push_back(
      {.what = "tables with half an update", .measured = static_cast<double>(audit.torn)});
  verdict.notes.emplace_back("updates acknowledged", ShowCount(audit.acknowledged));
  verdict.notes.emplace_back("pushes that failed", ShowCount(audit.unknown));
  for (const auto& lane : load.lanes()) {
    if (!lane->last_error.empty()) verdict.notes.emplace_back(lane->table.name, lane->last_error);
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
