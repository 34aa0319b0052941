// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/cluster_model.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "client/cli/simulate/exchange.h"
#include "client/cli/simulate/fabric.h"
#include "client/cli/simulate/ladder_driver.h"
#include "client/cli/simulate/membership.h"
#include "client/cli/simulate/simulated_group.h"
#include "client/cli/simulate/simulated_shard.h"
#include "client/cli/simulate/step_times.h"
#include "common/base/check.h"
#include "common/contract/statistical_cost.h"
#include "common/grouping/group_planner.h"
#include "common/simulation/simulator.h"

namespace covey::cli {
namespace {

// With more nodes, simulating each message takes too long for interactive use.
constexpr uint32_t kNodesAsMessages = 64;
// Bins of the histogram; all higher values share the last one.
constexpr size_t kStalenessPlaces = 65;
constexpr size_t kThroughputPoints = 60;
constexpr uint64_t kProgressParts = 200;

bool AsMessages(const ClusterOptions& options) {
  if (options.detail == Detail::kAuto) return options.nodes <= kNodesAsMessages;
  return options.detail == Detail::kMessages;
}

ThroughputParameters GroupModelOf(const ClusterOptions& options) {
  const double server_bytes_per_second = options.links.server_bytes_per_second * options.servers;
  const double pushed_bytes = options.servers == 0
                                  ? 0
                                  : static_cast<double>(options.gradient_bytes) /
                                        static_cast<double>(options.contract.local_steps);
  return {.samples_per_step = static_cast<double>(options.samples),
          .shares_follow_speed = options.ladder >= StragglerRung::kShift,
          .gradient_bytes = static_cast<double>(options.gradient_bytes),
          .pushed_bytes = pushed_bytes,
          .costs = LinkCostsOf(options.links),
          .noise_sigma = options.step_times.noise,
          .hiccup_chance = options.step_times.hiccup_rate,
          .hiccup_factor = options.step_times.hiccup_factor,
          .server_seconds_per_group =
              options.servers == 0 ? 0 : 2 * pushed_bytes / server_bytes_per_second,
          .statistical_penalty = StatisticalPenalty(options.contract)};
}

struct Cut {
  std::vector<std::vector<uint32_t>> groups;
  // The reason for this number of groups; empty when it was requested.
  std::string reason;
};

// The nodes of each group, as the scheduler's planner assigns them.
Cut CutIntoGroups(const ClusterOptions& options, const std::vector<TopologyPath>& paths,
                  const StepTimes& step_times, uint32_t groups) {
  std::vector<PlannedWorker> workers;
  for (uint32_t node = 0; node < paths.size(); ++node) {
    workers.push_back(
        {.node = NodeId(node + 1), .rank = node, .labels = FormatTopologyPath(paths[node])});
  }
  std::vector<std::vector<NodeId>> members;
  Cut cut;
  if (groups == 0) {
    for (PlannedWorker& worker : workers) {
      worker.speed = static_cast<double>(options.samples) /
                     absl::ToDoubleSeconds(step_times.ideal() * step_times.slowness(worker.rank));
    }
    const GroupPlan plan = PlanGroups(workers, {.model = GroupModelOf(options)});
    members = plan.Members();
    cut.reason = absl::StrCat("the planner chooses ", plan.Explain());
    if (const std::string why = plan.ExplainChoice(); !why.empty()) {
      absl::StrAppend(&cut.reason, "; ", why);
    }
  } else {
    members = PlanGroups(workers, groups);
  }
  for (const std::vector<NodeId>& group : members) {
    std::vector<uint32_t>& nodes = cut.groups.emplace_back();
    for (const NodeId member : group) nodes.push_back(static_cast<uint32_t>(member.value() - 1));
  }
  return cut;
}

class Cluster {
 public:
  Cluster(const ClusterOptions& options, uint32_t groups, const SimulationProgress& progress)
      : options_(options),
        progress_(progress),
        messages_(AsMessages(options)),
        paths_(PathsOfNodes(options)),
        nodes_(options.nodes),
        simulator_(options.seed),
        fabric_(options.links, RacksOfNodes(options.nodes, options.racks), options.servers),
        step_times_(options.step_times, options.nodes,
                    simulator_.Draws(Simulator::Stream::kStepTimes)),
        world_{.options = options,
               .simulator = simulator_,
               .fabric = fabric_,
               .step_times = step_times_,
               .shards = shards_,
               .nodes = nodes_,
               .computed =
                   [this](uint32_t node, absl::Duration compute, double samples) {
                     if (ladder_ != nullptr) ladder_->OnComputed(node, compute, samples);
                   },
               .finished = [this](const StepRecord& record) { OnFinished(record); },
               .left = [this](uint32_t node) { ladder_->OnLeft(node); }} {
    std::vector<LiveGroup> live;
    Cut cut = CutIntoGroups(options, paths_, step_times_, groups);
    if (!cut.reason.empty()) result_.decisions.emplace_back(absl::ZeroDuration(), cut.reason);
    steps_wanted_ = options.steps * cut.groups.size();
    for (std::vector<uint32_t>& members : cut.groups) {
      live.push_back({.id = GroupId(static_cast<uint32_t>(live.size() + 1))});
      groups_.push_back(
          std::make_unique<SimulatedGroup>(world_, live.back().id, Make(std::move(members))));
    }
    for (uint32_t tensor = 0; tensor < options.tensors; ++tensor) {
      shards_.push_back(std::make_unique<SimulatedShard>(simulator_, options.contract,
                                                         MakeShardListener(tensor)));
      shards_.back()->SetGroups(live);
    }
    result_.staleness.assign(kStalenessPlaces, 0);
    result_.group_steps_per_second.assign(groups_.size(), 0);
    if (options.ladder != StragglerRung::kOff) {
      ladder_ = std::make_unique<LadderDriver>(
          LadderDriver::World{
              .options = options,
              .simulator = simulator_,
              .nodes = nodes_,
              .groups = groups_,
              .make = [this](std::vector<uint32_t> members) { return Make(std::move(members)); }},
          result_.decisions);
    }
  }

  ClusterResult Run() {
    for (const auto& group : groups_) group->Start();
    while (steps_done_ < steps_wanted_) {
      // Groups never stop by themselves.
      COVEY_CHECK(simulator_.RunOne(absl::InfiniteFuture()));
    }
    Summarise();
    return std::move(result_);
  }

 private:
  std::shared_ptr<const Membership> Make(std::vector<uint32_t> members) const {
    return MakeMembership(options_, paths_, std::move(members), messages_);
  }

  SimulatedShard::Listener MakeShardListener(uint32_t tensor) {
    return {.applied =
                [this](GroupId, uint64_t staleness) {
                  ++pushes_;
                  staleness_sum_ += static_cast<double>(staleness);
                  result_.staleness_max = std::max(result_.staleness_max, staleness);
                  ++result_.staleness[std::min<uint64_t>(staleness, kStalenessPlaces - 1)];
                },
            .discarded = [this](GroupId) { ++result_.discarded; },
            .answered =
                [this, tensor](GroupId group, Step step, Version version) {
                  groups_[group.value() - 1]->Answer(tensor, step, version);
                }};
  }

  void OnFinished(const StepRecord& record) {
    ++steps_done_;
    ++result_.group_steps_per_second[record.group.value() - 1];
    simulator_.Note(static_cast<uint64_t>(record.samples));
    finished_.emplace_back(simulator_.now(), record.samples);
    const double members = record.members;
    result_.shares.compute += record.compute * members;
    result_.shares.members += record.waiting_for_members * members;
    result_.shares.collectives += record.collectives * members;
    result_.shares.servers += record.servers * members;
    if (progress_ && (steps_done_ * kProgressParts) / steps_wanted_ !=
                         ((steps_done_ - 1) * kProgressParts) / steps_wanted_) {
      progress_(static_cast<double>(steps_done_) / static_cast<double>(steps_wanted_));
    }
  }

  void Summarise() {
    const Membership& first = groups_[0]->membership();
    result_.groups = static_cast<uint32_t>(groups_.size());
    result_.members = first.size();
    result_.algorithm = first.algorithm;
    result_.messages = messages_;
    result_.elapsed = simulator_.now() - absl::UnixEpoch();
    const double seconds = absl::ToDoubleSeconds(result_.elapsed);
    const double steps = static_cast<double>(steps_done_) / static_cast<double>(groups_.size());
    double samples = 0;
    for (const auto& [when, count] : finished_) samples += count;
    result_.steps_per_second = steps / seconds;
    for (double& group : result_.group_steps_per_second) group /= seconds;
    result_.samples_per_second = samples / seconds;
    result_.efficiency =
        result_.samples_per_second * absl::ToDoubleSeconds(step_times_.ideal()) /
        (static_cast<double>(options_.nodes) * static_cast<double>(options_.samples));
    TimeShares& shares = result_.shares;
    const double sum = shares.compute + shares.members + shares.collectives + shares.servers;
    for (double* share : {&shares.compute, &shares.members, &shares.collectives, &shares.servers}) {
      *share /= sum;
    }
    if (pushes_ > 0) result_.staleness_mean = staleness_sum_ / static_cast<double>(pushes_);
    for (const NodeState& node : nodes_) result_.steps_aside += node.steps_aside;
    result_.uplink_bytes = fabric_.uplink_bytes();
    result_.uplink_bytes_per_step =
        std::accumulate(result_.uplink_bytes.begin(), result_.uplink_bytes.end(), 0.0) /
        static_cast<double>(result_.uplink_bytes.size()) / steps;
    FillThroughput(seconds);
    result_.digest = simulator_.digest();
  }

  // Computes the mean of each interval.
  void FillThroughput(double seconds) {
    const size_t points = std::clamp<size_t>(finished_.size() / 4, 1, kThroughputPoints);
    const double width = seconds / static_cast<double>(points);
    std::vector<double> samples(points, 0);
    for (const auto& [when, count] : finished_) {
      const double at = absl::ToDoubleSeconds(when - absl::UnixEpoch());
      samples[std::min(static_cast<size_t>(at / width), points - 1)] += count;
    }
    for (size_t i = 0; i < points; ++i) {
      result_.throughput.emplace_back((static_cast<double>(i) + 0.5) * width, samples[i] / width);
    }
  }

  // Constant after construction.
  const ClusterOptions& options_;
  const SimulationProgress& progress_;
  const bool messages_;
  const std::vector<TopologyPath> paths_;

  // The simulated world.
  std::vector<NodeState> nodes_;
  Simulator simulator_;
  Fabric fabric_;
  StepTimes step_times_;
  std::vector<std::unique_ptr<SimulatedShard>> shards_;  // per tensor
  SimulatedGroup::World world_;
  std::vector<std::unique_ptr<SimulatedGroup>> groups_;
  std::unique_ptr<LadderDriver> ladder_;  // none when the ladder is off

  // Observations.
  uint64_t steps_wanted_ = 0;
  uint64_t steps_done_ = 0;
  uint64_t pushes_ = 0;
  double staleness_sum_ = 0;
  std::vector<std::pair<absl::Time, double>> finished_;
  ClusterResult result_;
};

}  // namespace

ClusterResult SimulateCluster(const ClusterOptions& options, uint32_t groups,
                              const SimulationProgress& progress) {
  return Cluster(options, groups, progress).Run();
}

}  // namespace covey::cli
