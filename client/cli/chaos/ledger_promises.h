// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "client/cli/chaos/ledger_load.h"
#include "client/cli/chaos/verdict.h"

namespace covey::cli {

// Ends the load, and adds to the verdict whether each acknowledged update was applied, and once.
// Errors: those of LedgerLoad::Finish and LedgerLoad::Check.
absl::Status AddLedgerPromises(LedgerLoad& load, Verdict& verdict);

}  // namespace covey::cli
