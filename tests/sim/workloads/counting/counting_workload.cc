// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_workload.h"

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/counting/counting_auditor.h"
#include "tests/sim/workloads/counting/counting_ledger.h"
#include "tests/sim/workloads/counting/counting_outcomes.h"
#include "tests/sim/workloads/counting/counting_plan.h"
#include "tests/sim/workloads/counting/counting_pusher.h"
#include "tests/sim/workloads/counting/counting_slots.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// The shortest time-out of an operation.
constexpr absl::Duration kPatience = absl::Milliseconds(100);
// The same without faults: operations must succeed, even while shards move.
constexpr absl::Duration kQuietPatience = absl::Seconds(30);

class CountingWorkload : public Workload {
 public:
  CountingWorkload(Random random, Violations& violations)
      : violations_(violations),
        plan_(DrawCountingPlan(random)),
        slots_(plan_),
        ledger_(violations, plan_.arrivals),
        outcomes_(ledger_, violations) {}

  std::string name() const override { return std::string(kCounting); }
  uint32_t groups() const override { return 1; }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override { return audit_.done(); }
  void Check() override;
  std::string Report() const override;

 private:
  Violations& violations_;
  const CountingPlan plan_;
  CountingSlots slots_;
  CountingLedger ledger_;
  CountingOutcomes outcomes_;
  CountingAudit audit_;
};

void CountingWorkload::SetUp(SimCluster& cluster) {
  const bool quiet = cluster.config().quiet;
  if (quiet) outcomes_.ExpectSuccess();
  cluster.AddObserver(ledger_);
  const CountingPusher::Options pusher{
      .plan = plan_,
      .slots = slots_,
      .ledger = ledger_,
      .outcomes = outcomes_,
      .violations = violations_,
      // Makes pushing last about as long as the faults.
      .think_max = cluster.config().safety *
                   (2 * plan_.haste * plan_.clients / static_cast<double>(plan_.pushes)),
      .patience_min = quiet ? kQuietPatience : kPatience,
      .quiet = quiet};
  for (uint32_t i = 0; i < plan_.clients; ++i) {
    cluster.AddClient(absl::StrCat("client-", i), proto::CLIENT, [pusher](Random random) {
      return std::make_unique<CountingPusher>(pusher, random);
    });
  }
  const CountingAuditor::Options auditor{.plan = plan_,
                                         .slots = slots_,
                                         .cluster = cluster,
                                         .violations = violations_,
                                         .audit = audit_};
  cluster.AddClient("auditor", proto::CLIENT,
                    [auditor](Random) { return std::make_unique<CountingAuditor>(auditor); });
}

void CountingWorkload::Check() {
  const proto::Table& table = *audit_.view->FindTable(plan_.Spec().name());
  for (const proto::Shard& shard : table.shards()) {
    ledger_.CheckFinal(
        {{TableId(table.id()), ShardIndex(shard.index())}, shard.generation()},
        std::span<const float>(audit_.values).subspan(shard.first_element(), shard.element_count()),
        slots_.auditors_first());
  }
}

std::string CountingWorkload::Report() const {
  return absl::StrCat(Describe(plan_), " pushed=", slots_.pushes_taken(),
                      " acknowledged=", outcomes_.acknowledged(), " failed=", outcomes_.failed());
}

}  // namespace

std::unique_ptr<Workload> MakeCountingWorkload(Random random, Violations& violations) {
  return std::make_unique<CountingWorkload>(random, violations);
}

}  // namespace covey::sim
