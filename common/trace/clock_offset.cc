// SPDX-License-Identifier: Apache-2.0
#include "common/trace/clock_offset.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace covey {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(5);
constexpr size_t kWindows = 24;
// Over a shorter time a line shows the errors of its points, and not the clocks' speeds.
constexpr absl::Duration kLineFrom = absl::Seconds(15);
// Faster and slower clocks than this are broken.
constexpr double kDriftMax = 1e-3;

}  // namespace

absl::Time ClockLine::Map(absl::Time t) const { return t + offset + drift * (t - at); }

void ClockOffset::Add(absl::Time sent, absl::Time received, absl::Time other) {
  if (received < sent) return;
  const absl::Duration round_trip = received - sent;
  const Exchange exchange{.at = sent + round_trip / 2,
                          .offset = other - (sent + round_trip / 2),
                          .error = round_trip / 2};
  if (!best_.empty()) {
    const Exchange& last = best_.back();
    const absl::Duration may_differ =
        exchange.error + last.error + kDriftMax * absl::AbsDuration(exchange.at - last.at);
    if (absl::AbsDuration(exchange.offset - last.offset) > may_differ) {
      best_.clear();
      window_end_ = absl::InfinitePast();
    }
  }
  if (received >= window_end_) {
    window_end_ = received + kWindow;
    best_.push_back(exchange);
    if (best_.size() > kWindows) best_.pop_front();
  } else if (exchange.error < best_.back().error) {
    best_.back() = exchange;
  }
}

std::optional<ClockLine> ClockOffset::line() const {
  if (best_.empty()) return std::nullopt;
  const Exchange& origin = best_.back();
  // A window in which all exchanges have waited says less than its neighbours.
  absl::Duration shortest = absl::InfiniteDuration();
  for (const Exchange& each : best_) shortest = std::min(shortest, each.error);
  double weights = 0;
  double mean_t = 0;
  double mean_offset = 0;
  const auto weight = [shortest](const Exchange& each) {
    const double ratio =
        absl::FDivDuration(shortest + absl::Nanoseconds(1), each.error + absl::Nanoseconds(1));
    return ratio * ratio;
  };
  const auto t_of = [&](const Exchange& each) {
    return absl::ToDoubleSeconds(each.at - origin.at);
  };
  const auto offset_of = [&](const Exchange& each) {
    return absl::ToDoubleSeconds(each.offset - origin.offset);
  };
  for (const Exchange& each : best_) {
    weights += weight(each);
    mean_t += weight(each) * t_of(each);
    mean_offset += weight(each) * offset_of(each);
  }
  mean_t /= weights;
  mean_offset /= weights;
  double drift = 0;
  if (best_.size() >= 3 && origin.at - best_.front().at >= kLineFrom) {
    double above = 0;
    double below = 0;
    for (const Exchange& each : best_) {
      const double t = t_of(each) - mean_t;
      above += weight(each) * t * (offset_of(each) - mean_offset);
      below += weight(each) * t * t;
    }
    if (below > 0) drift = std::clamp(above / below, -kDriftMax, kDriftMax);
  } else {
    // Too short for a line: the best exchange alone.
    const auto best =
        std::min_element(best_.begin(), best_.end(),
                         [](const Exchange& a, const Exchange& b) { return a.error < b.error; });
    return ClockLine{.at = best->at, .offset = best->offset, .drift = 0, .error = best->error};
  }
  return ClockLine{.at = origin.at + absl::Seconds(mean_t),
                   .offset = origin.offset + absl::Seconds(mean_offset),
                   .drift = drift,
                   .error = shortest};
}

}  // namespace covey
