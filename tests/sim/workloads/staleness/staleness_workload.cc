// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/staleness/staleness_workload.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/last_steps.h"
#include "tests/sim/workloads/staleness/contract_switcher.h"
#include "tests/sim/workloads/staleness/staleness_plan.h"
#include "tests/sim/workloads/staleness/staleness_progress.h"
#include "tests/sim/workloads/staleness/staleness_trainer.h"
#include "tests/sim/workloads/truth/staleness_truth.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

class StalenessWorkload : public Workload {
 public:
  StalenessWorkload(Random random, absl::string_view kind, Violations& violations)
      : violations_(violations),
        plan_(DrawStalenessPlan(random, kind)),
        truth_(
            violations,
            {.steps = plan_.steps(), .averages = plan_.averages(), .discards = plan_.discards()}) {}

  std::string name() const override { return std::string(kStaleness); }
  uint32_t groups() const override { return plan_.groups; }
  bool is_elastic() const override { return plan_.elastic; }
  void Adapt(SimConfig& config) const override {
    if (plan_.HasContract(Contract::Kind::kLocal)) config.small_limits = false;
  }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  Violations& violations_;
  const StalenessPlan plan_;
  StalenessTruth truth_;
  LastSteps last_steps_;
  StalenessProgress progress_;
};

void StalenessWorkload::SetUp(SimCluster& cluster) {
  last_steps_.SetCluster(cluster);
  cluster.AddObserver(truth_);
  const absl::Duration safety = cluster.config().safety;
  const StalenessTrainer::Options trainer{
      .plan = plan_,
      .truth = truth_,
      .last_steps = last_steps_,
      .progress = progress_,
      .violations = violations_,
      .think_max = safety * (2 * plan_.haste / static_cast<double>(plan_.ordinary_steps)),
      .quiet = cluster.config().quiet};
  const auto make_trainer = [trainer](Random random) {
    return std::make_unique<StalenessTrainer>(trainer, random);
  };
  for (uint32_t i = 0; i < plan_.groups; ++i) {
    cluster.AddClient(absl::StrCat("worker-", i), proto::WORKER, make_trainer);
  }
  for (size_t i = 0; i < plan_.late_starts.size(); ++i) {
    cluster.AddLateClient(safety * plan_.late_starts[i], absl::StrCat("worker-", plan_.groups + i),
                          proto::WORKER, make_trainer);
  }
  if (plan_.switches.empty()) return;
  const ContractSwitcher::Options switcher{
      .plan = plan_, .progress = progress_, .violations = violations_, .pause_max = safety};
  cluster.AddClient("operator", proto::CLIENT, [switcher](Random random) {
    return std::make_unique<ContractSwitcher>(switcher, random);
  });
}

bool StalenessWorkload::Finished() const {
  // A trainer whose group broke, or that left early, has ended.
  return last_steps_.workers_running() == progress_.finished.size();
}

void StalenessWorkload::Check() {
  // The last steps read, so a successful run has been checked.
  if (!progress_.finished.empty() && truth_.reads() == 0) {
    violations_.Add(kStaleness, "groups finished all steps, and nobody has read anything");
  }
}

std::string StalenessWorkload::Report() const {
  return absl::StrCat(Describe(plan_), " joined_late=", progress_.joined_late,
                      " switched=", progress_.switched, " succeeded=", progress_.succeeded,
                      " failed=", progress_.failed, " reads=", truth_.reads());
}

}  // namespace

std::unique_ptr<Workload> MakeStalenessWorkload(Random random, absl::string_view kind,
                                                Violations& violations) {
  return std::make_unique<StalenessWorkload>(random, kind, violations);
}

}  // namespace covey::sim
