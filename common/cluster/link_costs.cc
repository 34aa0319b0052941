// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/link_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

namespace covey {
namespace {

// Shortest round trip for each size.
using Shortest = std::map<size_t, double>;

bool IsUsable(const LinkSample& sample) {
  return std::isfinite(sample.round_trip_seconds) && sample.round_trip_seconds > 0;
}

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

// As the header says; `otherwise` without samples of several messages.
double FitMessageSeconds(std::span<const LinkSample> samples,
                         const std::array<Shortest, kLevels>& shortest, double otherwise) {
  std::vector<double> fits;
  for (const LinkSample& sample : samples) {
    const Shortest& single = shortest[static_cast<size_t>(sample.level)];
    const auto one = single.find(sample.bytes);
    if (sample.messages < 2 || !IsUsable(sample) || one == single.end()) continue;
    fits.push_back((sample.round_trip_seconds - one->second) / (2.0 * (sample.messages - 1)));
  }
  if (fits.empty()) return otherwise;
  std::sort(fits.begin(), fits.end());
  return std::clamp(fits[fits.size() / 2], kMessageSecondsMin, kMessageSecondsMax);
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
    if (sample.messages > 1 || !IsUsable(sample)) continue;
    Shortest& of_level = shortest[static_cast<size_t>(sample.level)];
    const auto at = of_level.try_emplace(sample.bytes, sample.round_trip_seconds).first;
    at->second = std::min(at->second, sample.round_trip_seconds);
  }
  LinkCosts costs = otherwise;
  costs.message_seconds = FitMessageSeconds(samples, shortest, otherwise.message_seconds);
  std::array<std::optional<LinkCost>, kLevels> fitted;
  for (size_t level = 0; level < kLevels; ++level) {
    fitted[level] = Fit(shortest[level], otherwise.levels[level], costs.message_seconds);
  }
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
