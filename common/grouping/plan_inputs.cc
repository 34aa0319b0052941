// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/plan_inputs.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace covey {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

bool IsAmount(double number) { return std::isfinite(number) && number >= 0; }

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the scheduler's plan inputs are damaged: ", what, "; report this as a bug"));
}

bool AreAmounts(const proto::PlanInputs& message) {
  for (const proto::PlanWorker& worker : message.workers()) {
    if (!IsAmount(worker.samples_per_second()) || !IsAmount(worker.failures_per_hour())) {
      return false;
    }
  }
  for (const proto::PlanLink& link : message.links()) {
    if (!IsAmount(link.latency_seconds()) || !IsAmount(link.bytes_per_second()) ||
        link.bytes_per_second() == 0 || !IsAmount(link.uplink_bytes_per_second())) {
      return false;
    }
  }
  for (const proto::PlanFit& fit : message.fits()) {
    if (fit.groups() == 0 || !IsAmount(fit.ratio()) || fit.ratio() == 0) return false;
  }
  return IsAmount(message.samples_per_step()) && message.samples_per_step() > 0 &&
         IsAmount(message.group_samples_per_step()) && IsAmount(message.pushed_bytes()) &&
         IsAmount(message.gradient_bytes()) && IsAmount(message.noise_sigma()) &&
         IsAmount(message.server_seconds_per_group()) && IsAmount(message.statistical_penalty()) &&
         IsAmount(message.recovery_seconds());
}

}  // namespace

GroupPlanOptions PlanInputs::options() const {
  GroupPlanOptions options{.model = model};
  if (model.groups_in_step && model.pushed_bytes >= model.gradient_bytes) {
    options.groups = (workers.size() + kGroupMembersMax - 1) / kGroupMembersMax;
  }
  return options;
}

void SetPlanInputs(const PlanInputs& inputs, proto::PlanInputs& message) {
  for (const PlannedWorker& worker : inputs.workers) {
    proto::PlanWorker& each = *message.add_workers();
    each.set_node(worker.node.value());
    each.set_samples_per_second(worker.speed);
    each.set_failures_per_hour(worker.failures_per_hour);
  }
  const ThroughputParameters& model = inputs.model;
  for (const LinkCost& cost : model.costs.levels) {
    proto::PlanLink& link = *message.add_links();
    link.set_latency_seconds(cost.latency_seconds);
    link.set_bytes_per_second(cost.bytes_per_second);
    if (std::isfinite(cost.uplink_bytes_per_second)) {
      link.set_uplink_bytes_per_second(cost.uplink_bytes_per_second);
    }
  }
  message.set_samples_per_step(model.samples_per_step);
  message.set_group_samples_per_step(model.group_samples_per_step);
  message.set_gradient_bytes(model.gradient_bytes);
  message.set_pushed_bytes(model.pushed_bytes);
  message.set_noise_sigma(model.noise_sigma);
  message.set_server_seconds_per_group(model.server_seconds_per_group);
  message.set_statistical_penalty(model.statistical_penalty);
  message.set_recovery_seconds(model.recovery_seconds);
  message.set_shares_follow_speed(model.shares_follow_speed);
  for (const auto& [groups, ratio] : model.fits) {
    proto::PlanFit& fit = *message.add_fits();
    fit.set_groups(groups);
    fit.set_ratio(ratio);
  }
  message.set_groups_in_step(model.groups_in_step);
  for (const std::string& source : inputs.sources) message.add_sources(source);
}

absl::StatusOr<PlanInputs> ReadPlanInputs(const proto::PlanInputs& message,
                                          const proto::ClusterView& view) {
  if (message.workers().empty()) return Bad("they name no worker");
  if (message.links_size() != static_cast<int>(kLevels))
    return Bad("they lack the cost of a level of links");
  if (!AreAmounts(message)) return Bad("a number is negative, infinite or NaN");
  std::map<uint64_t, const proto::Node*> nodes;
  for (const proto::Node& node : view.nodes()) nodes.emplace(node.id(), &node);
  PlanInputs inputs;
  for (const proto::PlanWorker& worker : message.workers()) {
    const auto node = nodes.find(worker.node());
    if (node == nodes.end())
      return Bad(absl::StrCat("node ", worker.node(), " is not in the view"));
    inputs.workers.push_back({.node = NodeId(worker.node()),
                              .rank = node->second->rank(),
                              .labels = node->second->labels(),
                              .speed = worker.samples_per_second(),
                              .failures_per_hour = worker.failures_per_hour()});
    nodes.erase(node);
  }
  ThroughputParameters& model = inputs.model;
  for (size_t level = 0; level < kLevels; ++level) {
    const proto::PlanLink& link = message.links(static_cast<int>(level));
    model.costs.levels[level] = {.latency_seconds = link.latency_seconds(),
                                 .bytes_per_second = link.bytes_per_second(),
                                 .uplink_bytes_per_second = link.uplink_bytes_per_second() > 0
                                                                ? link.uplink_bytes_per_second()
                                                                : kUnlimited};
  }
  model.samples_per_step = message.samples_per_step();
  model.group_samples_per_step = message.group_samples_per_step();
  model.gradient_bytes = message.gradient_bytes();
  model.pushed_bytes =
      message.has_pushed_bytes() ? message.pushed_bytes() : message.gradient_bytes();
  model.noise_sigma = message.noise_sigma();
  model.server_seconds_per_group = message.server_seconds_per_group();
  model.statistical_penalty = message.statistical_penalty();
  model.recovery_seconds = message.recovery_seconds();
  model.shares_follow_speed = message.shares_follow_speed();
  for (const proto::PlanFit& fit : message.fits()) {
    model.fits[static_cast<size_t>(fit.groups())] = fit.ratio();
  }
  model.groups_in_step = message.groups_in_step();
  inputs.sources.assign(message.sources().begin(), message.sources().end());
  return inputs;
}

}  // namespace covey
