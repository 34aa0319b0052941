// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/lane_figures.h"

#include <algorithm>
#include <cmath>

namespace covey::cli {

double DipPercent(const std::vector<const LedgerLoad::Lane*>& lanes, absl::Time before,
                  absl::Time fault, absl::Time from, absl::Time to) {
  double was = 0, is = 0;
  for (const LedgerLoad::Lane* lane : lanes) {
    was += LedgerLoad::RateOf(*lane, before, fault);
    is += LedgerLoad::RateOf(*lane, from, to);
  }
  return was > 0 ? std::max(0.0, (1 - is / was) * 100) : NAN;
}

std::vector<double> RatesIn(const std::vector<std::unique_ptr<LedgerLoad::Lane>>& lanes,
                            absl::Time from, absl::Time to) {
  constexpr absl::Duration kPiece = absl::Milliseconds(250);
  std::vector<double> rates;
  for (absl::Time start = from; start + kPiece <= to; start += kPiece) {
    double& rate = rates.emplace_back(0);
    for (const auto& lane : lanes) rate += LedgerLoad::RateOf(*lane, start, start + kPiece);
  }
  return rates;
}

double LongestGapSeconds(const LedgerLoad::Lane& lane, absl::Time fault, absl::Time end) {
  absl::Time last = fault;
  absl::Duration longest;
  for (auto at = std::upper_bound(lane.times.begin(), lane.times.end(), fault);
       at != lane.times.end() && *at < end; ++at) {
    longest = std::max(longest, *at - last);
    last = *at;
  }
  // No acknowledgment until the end is an outage, not a gap.
  return end - last > longest ? INFINITY : absl::ToDoubleSeconds(longest);
}

double LongestGapSeconds(const std::vector<const LedgerLoad::Lane*>& lanes, absl::Time fault,
                         absl::Time end) {
  double longest = lanes.empty() ? NAN : 0;
  for (const LedgerLoad::Lane* lane : lanes) {
    longest = std::max(longest, LongestGapSeconds(*lane, fault, end));
  }
  return longest;
}

size_t AcknowledgedIn(const LedgerLoad::Lane& lane, absl::Time from, absl::Time to) {
  const auto first = std::lower_bound(lane.times.begin(), lane.times.end(), from);
  const auto last = std::lower_bound(lane.times.begin(), lane.times.end(), to);
  return first < last ? static_cast<size_t>(last - first) : 0;
}

}  // namespace covey::cli
