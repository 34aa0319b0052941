// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/link_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace covey {
namespace {

// Shortest round trip for each size.
using Shortest = std::map<size_t, double>;

std::optional<LinkCost> Fit(const Shortest& shortest, LinkCost cost, double latency_min) {
  if (shortest.empty()) return std::nullopt;
  const auto& [small, small_seconds] = *shortest.begin();
  const auto& [large, large_seconds] = *shortest.rbegin();
  if (large_seconds > small_seconds) {
    cost.bytes_per_second = static_cast<double>(large - small) / (large_seconds - small_seconds);
  }
  const double on_the_wire = static_cast<double>(small) / cost.bytes_per_second;
  cost.latency_seconds = std::max(latency_min, (small_seconds - on_the_wire) / 2);
  return cost;
}

// The uplink is taken for the bottleneck when a flow out of a domain gets less than this fraction
// of the bandwidth of a flow inside.
constexpr double kNarrow = 0.7;

void FitUplinks(const std::array<std::optional<LinkCost>, kLevels>& fitted, LinkCosts& costs) {
  for (auto level = static_cast<size_t>(Level::kHost); level < kNamedLevels; ++level) {
    const auto outside =
        std::find_if(fitted.begin() + static_cast<std::ptrdiff_t>(level) + 1, fitted.end(),
                     [](const auto& fit) { return fit.has_value(); });
    if (outside == fitted.end()) continue;
    const double flow = (*outside)->bytes_per_second;
    double& uplink = costs.levels[level].uplink_bytes_per_second;
    const bool narrow = fitted[level] && flow < kNarrow * fitted[level]->bytes_per_second;
    uplink = narrow ? flow : std::max(uplink, flow);
  }
}

}  // namespace

LinkCosts FitLinkCosts(std::span<const LinkSample> samples, const LinkCosts& otherwise) {
  std::array<Shortest, kLevels> shortest;
  for (const LinkSample& sample : samples) {
    if (!std::isfinite(sample.round_trip_seconds) || sample.round_trip_seconds <= 0) continue;
    Shortest& of_level = shortest[static_cast<size_t>(sample.level)];
    const auto at = of_level.try_emplace(sample.bytes, sample.round_trip_seconds).first;
    at->second = std::min(at->second, sample.round_trip_seconds);
  }
  std::array<std::optional<LinkCost>, kLevels> fitted;
  for (size_t level = 0; level < kLevels; ++level) {
    fitted[level] = Fit(shortest[level], otherwise.levels[level], otherwise.message_seconds);
  }
  LinkCosts costs = otherwise;
  FitUplinks(fitted, costs);
  for (size_t level = 0; level < kLevels; ++level) {
    std::optional<LinkCost> found;
    for (size_t narrower = level + 1; narrower > 0 && !found; --narrower) {
      found = fitted[narrower - 1];
    }
    for (size_t wider = level + 1; wider < kLevels && !found; ++wider) found = fitted[wider];
    if (!found) break;
    costs.levels[level].latency_seconds = found->latency_seconds;
    costs.levels[level].bytes_per_second = found->bytes_per_second;
  }
  return costs;
}

}  // namespace covey
