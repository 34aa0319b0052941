// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/groups_workload.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "tests/sim/workloads/groups/group_results.h"
#include "tests/sim/workloads/groups/groups_plan.h"
#include "tests/sim/workloads/groups/groups_trainer.h"
#include "tests/sim/workloads/groups/mean_truth.h"
#include "tests/sim/workloads/last_steps.h"
#include "tests/sim/workloads/truth/given_gradients.h"
#include "tests/sim/workloads/truth/staleness_truth.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

class GroupsWorkload : public Workload {
 public:
  GroupsWorkload(Random random, Violations& violations);

  std::string name() const override { return std::string(kGroups); }
  uint32_t groups() const override { return plan_.groups; }
  bool is_elastic() const override { return plan_.elastic; }
  void Adapt(SimConfig& config) const override;
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  void AddMember(SimCluster& cluster, absl::Duration delay);

  Violations& violations_;
  const GroupsPlan plan_;
  Random random_;
  GivenGradients given_;
  StalenessTruth truth_;
  GroupResults results_;
  MeanTruth means_;
  uint32_t members_ = 0;
  LastSteps last_steps_;
  std::map<std::string, NodeId> finished_;  // members with all steps
};

GroupsWorkload::GroupsWorkload(Random random, Violations& violations)
    : violations_(violations),
      plan_(DrawGroupsPlan(random.Split(1))),
      random_(random.Split(2)),
      truth_(violations, {.steps = plan_.steps(),
                          .averages = plan_.HasContract(Contract::Kind::kBsp) ||
                                      plan_.HasContract(Contract::Kind::kBuffered),
                          .uneven = plan_.elastic || plan_.members > 1,
                          .rounded = plan_.HasFormat(WireFormat::kInt8Block),
                          .given = &given_}),
      results_(violations),
      means_(violations) {}

void GroupsWorkload::Adapt(SimConfig& config) const {
  config.scheduler.workers_per_group = plan_.members;
  if (plan_.HasContract(Contract::Kind::kLocal)) config.small_limits = false;
  if (!config.quiet) config.fault_share = plan_.fault_share;
  config.all_links_fail = true;
  for (const GroupsPlan::Drain& drain : plan_.drains) {
    config.elasticity.actions.push_back({.kind = ElasticAction::Kind::kDrain,
                                         .at = config.safety * drain.at,
                                         .name = absl::StrCat("worker-", drain.rank)});
  }
  std::stable_sort(config.elasticity.actions.begin(), config.elasticity.actions.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  if (plan_.calm || config.quiet) {
    config.network.loss = 0;
    config.network.corruption = 0;
  } else {
    config.network.loss /= 100;
    config.network.corruption /= 100;
  }
  if (plan_.calm) config.network.queue_messages = kTransportQueueMessagesMax;
  if (plan_.calm) config.inbox_max = kTransportQueueMessagesMax;
}

void GroupsWorkload::SetUp(SimCluster& cluster) {
  last_steps_.SetCluster(cluster);
  cluster.AddObserver(truth_);
  cluster.AddObserver(given_);
  cluster.AddObserver(means_);
  for (uint32_t i = 0; i < plan_.groups * plan_.members; ++i) {
    AddMember(cluster, absl::ZeroDuration());
  }
  for (const double start : plan_.late_starts) AddMember(cluster, cluster.config().safety * start);
}

void GroupsWorkload::AddMember(SimCluster& cluster, absl::Duration delay) {
  const uint32_t index = members_++;
  Random random = random_.Split(1000 + index);
  const std::string name = absl::StrCat("worker-", index);
  const absl::Duration think_max =
      cluster.config().safety * (2 * plan_.haste / static_cast<double>(plan_.ordinary_steps));
  const absl::Duration patience = plan_.patience + think_max * 1.5;
  worker::Communicator::Options group = plan_.group;
  group.patience_after_away = patience;
  const GroupsTrainer::Options options{.plan = plan_,
                                       .cluster = cluster,
                                       .given = given_,
                                       .truth = truth_,
                                       .results = results_,
                                       .means = means_,
                                       .last_steps = last_steps_,
                                       .finished = finished_,
                                       .violations = violations_,
                                       .step_draws = random_,
                                       .index = index,
                                       .think_max = think_max,
                                       .patience = patience};
  cluster.AddWorker(
      {.name = name,
       .labels = absl::StrCat("zone/rack-", random.Below(2), "/host-", random.Below(3)),
       .group = group,
       .delay = delay,
       .make_script = [options, name](Random draws) {
         return std::make_unique<GroupsTrainer>(options, name, draws);
       }});
}

bool GroupsWorkload::Finished() const {
  // A member whose group broke has ended.
  return last_steps_.workers_running() == finished_.size();
}

void GroupsWorkload::Check() {
  if (finished_.size() > 1 && plan_.positions() == 1 && results_.compared() == 0) {
    violations_.Add(kGroups, "members finished all steps, and nothing could be compared");
  }
}

std::string GroupsWorkload::Report() const {
  return absl::StrCat(Describe(plan_), " finished=", finished_.size(),
                      " succeeded=", results_.succeeded(), " failed=", results_.failed(),
                      " compared=", results_.compared(), " means=", means_.compared(),
                      " without_some=", means_.partial(), " reads=", truth_.reads());
}

}  // namespace

std::unique_ptr<Workload> MakeGroupsWorkload(Random random, Violations& violations) {
  return std::make_unique<GroupsWorkload>(random, violations);
}

}  // namespace covey::sim
