// SPDX-License-Identifier: Apache-2.0
#include "worker/update/server_update.h"

#include <utility>

namespace covey::worker {

ServerUpdate::ServerUpdate(ServerLink& link, std::vector<PartShards> shards,
                           const GradientFormat& format, WireFormat value_format)
    : link_(link), shards_(std::move(shards)), format_(format), value_format_(value_format) {
  if (!format.error_feedback || shards_.empty()) return;
  const PartRange last = shards_.back().elements;
  residual_.assign(last.first + last.count, 0);
}

void ServerUpdate::Apply(absl::Time now, PartStep step, Outbox& outbox) {
  const PartStep::Done done = AfterAll(shards_.size(), std::move(step.done));
  for (const PartShards& shards : shards_) {
    const PartRange range = shards.elements;
    client::Operation operation =
        OperationOn(shards, step.values.subspan(range.first, range.count));
    operation.samples = step.samples;
    operation.rate_factor = step.RateFactorOf(shards.piece);
    operation.format = format_.At(step.step);
    operation.value_format = value_format_;
    operation.deadline = step.deadline;
    if (!step.sum.empty()) {
      operation.gradient = step.sum.subspan(range.first, range.count);
      operation.gradient_memory = step.sum_memory;
      if (!residual_.empty()) {
        operation.residual = std::span(residual_).subspan(range.first, range.count);
      }
    }
    link_.Start(now, std::move(operation), step.step, done, outbox);
  }
}

void ServerUpdate::Fetch(absl::Time now, PartStep step, Outbox& outbox) {
  step.sum = {};
  Apply(now, std::move(step), outbox);
}

}  // namespace covey::worker
