// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/chaos/ledger_load.h"

namespace covey::cli {

// What a fault did to the acknowledgments of pushes. Pure.

// By how many percent the rate in [from, to) is below that in [before, fault); at least 0. NaN when
// there were no acknowledgments before.
double DipPercent(const std::vector<const LedgerLoad::Lane*>& lanes, absl::Time before,
                  absl::Time fault, absl::Time from, absl::Time to);

// The acknowledged pushes per second of all lanes together, for each short piece of [from, to).
std::vector<double> RatesIn(const std::vector<std::unique_ptr<LedgerLoad::Lane>>& lanes,
                            absl::Time from, absl::Time to);

// The longest time without an acknowledgment from `fault` to `end`; infinite when it lasts until
// `end`. Pushes that were in flight when the server died may still be acknowledged, so the first
// acknowledgment means little.
double LongestGapSeconds(const LedgerLoad::Lane& lane, absl::Time fault, absl::Time end);
// The longest of all lanes. NaN without lanes.
double LongestGapSeconds(const std::vector<const LedgerLoad::Lane*>& lanes, absl::Time fault,
                         absl::Time end);

// Acknowledgments in [from, to); 0 when that is empty.
size_t AcknowledgedIn(const LedgerLoad::Lane& lane, absl::Time from, absl::Time to);

}  // namespace covey::cli
