// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/plan_measurements.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/median.h"
#include "common/contract/statistical_cost.h"
#include "common/table/definition.h"
#include "scheduler/groups/measured_progress.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// With fewer a speed is not believed; older ones are forgotten.
constexpr size_t kMeasurementsMin = 3;
constexpr size_t kMeasurementsKept = 5;

// Whether the planner can compute with the measurement: a number that is not finite would make the
// numbers of all plans NaN.
bool IsUsable(const proto::Progress& progress) {
  const auto is_amount = [](double number) { return std::isfinite(number) && number > 0; };
  return is_amount(progress.compute_seconds()) && is_amount(progress.samples_per_step()) &&
         is_amount(progress.samples_per_step() / progress.compute_seconds()) &&
         is_amount(progress.samples_per_second()) && std::isfinite(progress.wait_seconds()) &&
         progress.recovery_seconds() >= 0 && std::isfinite(progress.recovery_seconds());
}

size_t CountServers(const proto::ClusterView& view) {
  return static_cast<size_t>(
      std::count_if(view.nodes().begin(), view.nodes().end(), [](const proto::Node& node) {
        return node.role() == proto::SERVER && node.state() == proto::Node::ALIVE;
      }));
}

}  // namespace

void PlanMeasurements::OnHeartbeat(absl::Time now, NodeId worker, const proto::Progress& progress) {
  Measured& measured = measured_[worker];
  if (!IsNewMeasurement(progress, measured.last) || !IsUsable(progress)) return;
  measured.last = progress;
  measured.at = now;
  measured.speeds.push_back(progress.samples_per_step() / progress.compute_seconds());
  measured.rates.push_back({now, progress.samples_per_second()});
  if (measured.speeds.size() <= kMeasurementsKept) return;
  measured.speeds.pop_front();
  measured.rates.pop_front();
}

void PlanMeasurements::OnDeparture(NodeId node) {
  measured_.erase(node);
  const proto::Node* departed = FindNode(state_.view(), node);
  if (departed != nullptr && departed->role() == proto::WORKER &&
      departed->state() == proto::Node::DEAD) {
    ++deaths_[departed->rank()];
  }
}

void PlanMeasurements::SetCosts(const LinkCosts& costs, std::string source) {
  costs_ = costs;
  costs_source_ = std::move(source);
}

std::vector<NodeId> PlanMeasurements::Workers() const {
  const std::set<uint64_t> in_groups = MembersOfActiveGroups(state_.view());
  std::vector<NodeId> workers;
  for (const proto::Node& node : state_.view().nodes()) {
    const bool is_evicted = node.home_group() != 0 && !in_groups.contains(node.id());
    if (node.role() == proto::WORKER && node.state() == proto::Node::ALIVE && !node.draining() &&
        !is_evicted) {
      workers.push_back(NodeId(node.id()));
    }
  }
  return workers;
}

std::vector<double> PlanMeasurements::Measured::RatesSince(absl::Time since) const {
  std::vector<double> found;
  for (const Rate& rate : rates) {
    if (rate.at >= since) found.push_back(rate.samples_per_second);
  }
  return found;
}

std::vector<NodeId> PlanMeasurements::Unmeasured(absl::Time now, const std::vector<NodeId>& workers,
                                                 absl::Time since) const {
  std::vector<NodeId> unmeasured;
  for (const NodeId worker : workers) {
    const auto measured = measured_.find(worker);
    const absl::Duration fresh_for = std::max(kFreshFor, 3 * absl::Seconds(StepSeconds(worker)));
    if (measured == measured_.end() ||
        measured->second.RatesSince(since).size() < kMeasurementsMin ||
        now - measured->second.at > fresh_for) {
      unmeasured.push_back(worker);
    }
  }
  return unmeasured;
}

double PlanMeasurements::SpeedOf(NodeId worker) const {
  const auto measured = measured_.find(worker);
  if (measured == measured_.end() || measured->second.speeds.size() < kMeasurementsMin) return 0;
  return UpperMedian({measured->second.speeds.begin(), measured->second.speeds.end()});
}

double PlanMeasurements::StepSeconds(NodeId worker) const {
  const auto measured = measured_.find(worker);
  if (measured == measured_.end()) return 0;
  return measured->second.last.compute_seconds() + measured->second.last.wait_seconds();
}

double PlanMeasurements::SamplesPerSecond(absl::Time since) const {
  double samples_per_second = 0;
  for (const proto::Group& group : state_.view().groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    for (const uint64_t member : group.members()) {
      const auto measured = measured_.find(NodeId(member));
      if (measured == measured_.end()) continue;
      samples_per_second += UpperMedian(measured->second.RatesSince(since));
    }
  }
  return samples_per_second;
}

std::map<size_t, double> PlanMeasurements::GroupSamples() const {
  std::map<size_t, double> samples_of;
  for (const proto::Group& group : state_.view().groups()) {
    if (group.state() != proto::Group::ACTIVE || group.members().empty()) continue;
    double samples = 0;
    bool is_known = true;
    for (const uint64_t member : group.members()) {
      const auto measured = measured_.find(NodeId(member));
      // Of this group, not of the one before.
      is_known =
          is_known && measured != measured_.end() && measured->second.last.group() == group.id();
      if (is_known) samples += measured->second.last.samples_per_step();
    }
    if (is_known) samples_of.emplace(static_cast<size_t>(group.members_size()), samples);
  }
  return samples_of;
}

bool PlanMeasurements::SharesFollowSpeed(const std::vector<NodeId>& workers) const {
  return options_.shifts_samples && std::all_of(workers.begin(), workers.end(), [this](NodeId id) {
           const auto measured = measured_.find(id);
           return measured != measured_.end() && measured->second.last.follows_shares();
         });
}

PlanInputs PlanMeasurements::Inputs(absl::Time now, const std::vector<NodeId>& workers) const {
  PlanInputs inputs;
  inputs.model.shares_follow_speed = SharesFollowSpeed(workers);
  const double hours = std::max(1.0, absl::ToDoubleHours(now - started_));
  size_t known = 0;
  std::vector<double> samples, recoveries;
  for (const NodeId id : workers) {
    const proto::Node& node = *FindNode(state_.view(), id);
    PlannedWorker worker{.node = id, .rank = node.rank(), .labels = node.labels()};
    worker.speed = SpeedOf(id);
    if (worker.speed > 0) ++known;
    if (const auto died = deaths_.find(node.rank()); died != deaths_.end()) {
      worker.failures_per_hour = static_cast<double>(died->second) / hours;
    }
    if (const auto measured = measured_.find(id); measured != measured_.end()) {
      const proto::Progress& last = measured->second.last;
      if (last.samples_per_step() > 0) samples.push_back(last.samples_per_step());
      if (last.recovery_seconds() > 0) recoveries.push_back(last.recovery_seconds());
    }
    inputs.workers.push_back(std::move(worker));
  }
  if (!samples.empty()) {
    inputs.model.samples_per_step =
        std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  }
  if (!recoveries.empty()) {
    inputs.model.recovery_seconds = std::accumulate(recoveries.begin(), recoveries.end(), 0.0) /
                                    static_cast<double>(recoveries.size());
  }
  uint64_t deaths = 0;
  for (const auto& [rank, count] : deaths_) deaths += count;
  inputs.model.costs = costs_;
  inputs.sources = {
      absl::StrFormat("speeds: measured, of %d of %d workers; %.4g samples per step%s", known,
                      inputs.workers.size(), inputs.model.samples_per_step,
                      inputs.model.shares_follow_speed ? ", which a group divides by speed" : ""),
      absl::StrFormat("failures: %d deaths in %.3g h; %.3g s to recover (%s)", deaths,
                      absl::ToDoubleHours(now - started_), inputs.model.recovery_seconds,
                      recoveries.empty() ? "assumed" : "measured"),
      costs_source_};
  AddTables(inputs);
  return inputs;
}

void PlanMeasurements::AddTables(PlanInputs& inputs) const {
  const double servers = static_cast<double>(std::max<size_t>(1, CountServers(state_.view())));
  double link_speed = 0;
  for (const Level level : {Level::kRack, Level::kZone, Level::kCluster}) {
    link_speed = std::max(link_speed, costs_.at(level).bytes_per_second);
  }
  ThroughputParameters& model = inputs.model;
  model.statistical_penalty = 0;
  size_t sparse = 0;
  std::string dearest = "none", waiting;
  for (const proto::Table& table : state_.view().tables()) {
    const auto definition = TableDefinition::InForce(table);
    if (!definition.ok()) continue;
    const Contract& contract = definition->contract;
    if (KeepsGroupsInStep(contract)) waiting = ContractName(contract);
    if (dearest == "none" || StatisticalPenalty(contract) > model.statistical_penalty) {
      dearest = ContractName(contract);
      model.statistical_penalty = StatisticalPenalty(contract);
    }
    if (definition->sparse) {
      ++sparse;
      continue;
    }
    const auto bytes_in = [elements = definition->elements](WireFormat format) {
      return static_cast<double>(EncodedBytes(format, elements));
    };
    // Mean bytes of the two directions: gradients go out, and values come back.
    const double bytes =
        (bytes_in(definition->gradient_format) + bytes_in(definition->value_format)) / 2;
    model.gradient_bytes += bytes;
    const bool is_local = contract.kind == Contract::Kind::kLocal;
    // Rounds travel as float32.
    model.pushed_bytes +=
        is_local ? bytes_in(WireFormat::kFloat32) / static_cast<double>(contract.local_steps)
                 : bytes;
  }
  model.groups_in_step = !waiting.empty();
  model.server_seconds_per_group = 2 * model.pushed_bytes / (servers * link_speed);
  inputs.sources.push_back(absl::StrFormat(
      "each way: %.4g MB, tables: %d%s; servers: %.0f", model.gradient_bytes / 1e6,
      state_.view().tables_size(),
      sparse == 0 ? "" : absl::StrFormat(", without the rows of %d sparse ones", sparse), servers));
  inputs.sources.push_back(
      model.groups_in_step
          ? absl::StrCat("contract: ", waiting, ", groups wait for each other")
          : absl::StrFormat("contract: %s, progress per sample falls as groups^-%.2f", dearest,
                            model.statistical_penalty));
}

}  // namespace covey::scheduler
