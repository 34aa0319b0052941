// SPDX-License-Identifier: Apache-2.0
#include "server/shard/gradient_aggregator.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/planted_bug.h"

namespace covey::server {

double AggregatedUpdate::rate_factor() const {
  // Relative to the first one, so that equal factors have themselves as their mean.
  const double first = pushes.front().rate_factor;
  double above = 0;
  for (const ReceivedPush& push : pushes) {
    above += static_cast<double>(push.samples) * (push.rate_factor - first);
  }
  return first + above / static_cast<double>(samples);
}

GradientAggregator::GradientAggregator(const Contract& contract, BufferPool& spares,
                                       size_t row_width, RoundMean mean)
    : spares_(spares),
      row_width_(row_width),
      mean_(mean),
      gate_(contract),
      arrivals_{.pushes = {}, .gradient_sum = GradientSum(spares, row_width), .encoded = {}} {}

void GradientAggregator::Add(const ReceivedPush& push, const GradientBuffers& gradient,
                             const EncodedGradient& encoded) {
  const uint64_t number = gate_.Add(
      {.group = push.group, .step = push.step, .samples = push.samples, .view = push.view});
  HeldPush held{push, gradient, encoded};
  if (gate_.sums_on_arrival() && !gate_.IsBeyond(push.group, push.step)) {
    SumReleased();
    Sum(held);
  } else {
    held_.emplace(number, std::move(held));
  }
}

void GradientAggregator::Sum(const HeldPush& held) { Join(held, arrivals_); }

void GradientAggregator::SumReleased() {
  for (auto held = held_.begin(); held != held_.end();) {
    const ReceivedPush& push = held->second.push;
    if (gate_.IsBeyond(push.group, push.step)) {
      ++held;
      continue;
    }
    Sum(held->second);
    held = held_.erase(held);
  }
}

void GradientAggregator::Join(const HeldPush& held, AggregatedUpdate& update) {
  update.pushes.push_back(held.push);
  if (held.push.samples == 0) return;
  const bool is_first = update.gradient_sum.empty();
  // The encoded form of the first push may share the memory of the sum.
  update.encoded = {};
  update.gradient_sum.Add(held.gradient, held.push.samples);
  if (is_first) update.encoded = held.encoded;
}

void GradientAggregator::KeepHeld() {
  if (Planted(PlantedBug::kHoldLentGradients)) return;
  // Earlier ones were kept when they were added.
  if (!held_.empty()) Keep(held_.rbegin()->second);
  const Buffer before = arrivals_.gradient_sum.elements();
  arrivals_.gradient_sum.Keep();
  KeepEncoded(before.data(), arrivals_.gradient_sum.elements(), arrivals_.encoded);
}

void GradientAggregator::KeepEncoded(const uint8_t* before, const Buffer& kept,
                                     EncodedGradient& encoded) {
  // A float32 gradient is its own encoded form.
  if (encoded.frame.data() == before) encoded.frame = kept;
  server::Keep(encoded, spares_);
}

void GradientAggregator::Keep(HeldPush& held) {
  Buffer& elements = held.gradient.elements;
  const Buffer before = elements;
  elements = KeptElements(elements, row_width_ != 0, spares_);
  KeepEncoded(before.data(), elements, held.encoded);
}

size_t GradientAggregator::held_bytes() const {
  size_t bytes = arrivals_.gradient_sum.bytes();
  for (const auto& [number, held] : held_) bytes += held.gradient.bytes();
  return bytes;
}

std::optional<AggregatedUpdate> GradientAggregator::TakeDue(absl::Time now,
                                                            const GroupCensus& groups) {
  const std::optional<UpdateGate::Update> due = gate_.TakeDue(now, groups);
  if (!due) return std::nullopt;
  // The pushes that are not held were summed on arrival.
  const bool is_summed = std::any_of(due->pushes.begin(), due->pushes.end(),
                                     [this](uint64_t number) { return !held_.contains(number); });
  AggregatedUpdate next{
      .pushes = {}, .gradient_sum = GradientSum(spares_, row_width_), .encoded = {}};
  AggregatedUpdate update = std::move(is_summed ? arrivals_ : next);
  if (is_summed) arrivals_ = std::move(next);
  for (const uint64_t number : due->pushes) {
    const auto held = held_.find(number);
    if (held == held_.end()) continue;
    Join(held->second, update);
    held_.erase(held);
  }
  COVEY_CHECK(update.pushes.size() == due->pushes.size());
  update.samples = due->samples;
  update.gradient_sum.Finish(mean_);
  if (update.encoded.frame.empty() && !update.encoded.keys) {
    update.encoded = update.gradient_sum.Encoded();
  }
  return update;
}

}  // namespace covey::server
