// SPDX-License-Identifier: Apache-2.0
#include "server/shard/staleness_correction.h"

#include <utility>

#include "common/cluster/limits.h"
#include "common/optimizer/kernels.h"

namespace covey::server {

StalenessCorrection::StalenessCorrection(const AsynchronyRules& rules,
                                         const AsynchronyEstimates& estimates, BufferPool& spares)
    : rules_(rules), spares_(spares), governor_(rules.target_momentum, estimates) {}

void StalenessCorrection::RecordSent(const Producer& producer, Version version,
                                     const Buffer& values, bool is_first) {
  if (!compensates()) return;
  const auto known = sent_.find(producer);
  if (known != sent_.end()) {
    if (!is_first) known->second = {.version = version, .values = values};
  } else if (sent_.size() < kProducersPerShardMax) {
    sent_.emplace(producer, Sent{.version = version, .values = values});
  }
}

void StalenessCorrection::Forget(absl::FunctionRef<bool(const Producer&)> is_gone) {
  absl::erase_if(sent_, [&](const auto& entry) { return is_gone(entry.first); });
}

Buffer StalenessCorrection::Compensate(const ReceivedPush& push, const Buffer& gradient_sum,
                                       const Buffer& values) {
  const auto sent = sent_.find(push.key.producer);
  if (sent == sent_.end() || sent->second.version != push.base_version ||
      sent->second.values.data() == values.data()) {
    return gradient_sum;
  }
  const double strength = rules_.delay_compensation / static_cast<double>(push.samples);
  Buffer compensated = spares_.Take(gradient_sum.size());
  CompensateDelay(static_cast<float>(strength), gradient_sum.As<float>(), values.As<float>(),
                  sent->second.values.As<float>(), compensated.MutableAs<float>());
  return compensated;
}

UpdateAdjustment StalenessCorrection::BeginUpdate(const AggregatedUpdate& update, Version before,
                                                  size_t live_groups, const Contract& contract) {
  double total = 0;
  size_t known = 0;
  for (const ReceivedPush& push : update.pushes) {
    // 0 = unknown; a version ahead of this shard belongs to another shard, or is false.
    if (push.base_version == Version() || push.base_version > before) continue;
    const double staleness = static_cast<double>(before.value() - push.base_version.value());
    governor_.ObservePush(staleness);
    total += staleness;
    ++known;
  }
  const double staleness = known == 0 ? 0 : total / static_cast<double>(known);
  UpdateAdjustment adjustment;
  if (rules_.scales_rate) adjustment.rate_factor = 1 / (1 + staleness);
  const auto setting = governor_.BeginUpdate({.pushes = update.pushes.size(),
                                              .groups = live_groups,
                                              .on_arrival = contract.AppliesOnArrival()});
  if (setting) {
    adjustment.rate_factor = setting->rate_factor;
    adjustment.momentum = setting->momentum;
  }
  return adjustment;
}

proto::TableAsynchrony StalenessCorrection::Report() const {
  proto::TableAsynchrony report;
  report.set_staleness(governor_.staleness());
  report.set_implicit_momentum(governor_.implicit_momentum());
  report.set_explicit_momentum(governor_.explicit_momentum());
  report.set_target_momentum(governor_.target().value_or(0));
  report.set_updates_above_target(governor_.updates_above_target());
  return report;
}

}  // namespace covey::server
