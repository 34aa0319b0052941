// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_workload.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/table/row_type.h"
#include "tests/sim/workloads/counting/counting_auditor.h"
#include "tests/sim/workloads/counting/counting_ledger.h"
#include "tests/sim/workloads/counting/counting_outcomes.h"
#include "tests/sim/workloads/counting/counting_plan.h"
#include "tests/sim/workloads/counting/counting_pusher.h"
#include "tests/sim/workloads/counting/counting_rows.h"
#include "tests/sim/workloads/counting/counting_slots.h"
#include "tests/sim/workloads/counting/row_lives.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// The shortest time-out of an operation.
constexpr absl::Duration kPatience = absl::Milliseconds(100);
// The same without faults: operations must succeed, even while shards move.
constexpr absl::Duration kQuietPatience = absl::Seconds(30);

class CountingWorkload : public Workload {
 public:
  CountingWorkload(const CountingPlan& plan, Violations& violations)
      : violations_(violations),
        plan_(plan),
        slots_(plan_),
        ledger_(violations, plan_.arrivals, plan_.slots()),
        outcomes_(ledger_, violations) {
    if (plan_.admits_late()) ledger_.ExpectLateRows();
    if (plan_.gated) ledger_.ExpectGate();
    if (plan_.momentum) ledger_.ExpectMomentum();
    ledger_.ExpectRowsOf(*RowTypeFromProto(plan_.row_type));
  }

  std::string name() const override {
    if (plan_.gated) return std::string(kGated);
    if (plan_.momentum) return std::string(kMomentum);
    return std::string(plan_.sparse ? kSparse : plan_.functions ? kFunctions : kCounting);
  }
  uint32_t groups() const override { return 1; }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override { return audit_.done(); }
  void Check() override;
  std::string Report() const override;

 private:
  // What the audit has of a row of a sparse table.
  std::span<const float> RowOf(uint64_t key) const;
  // Whether each row holds the pushes that its life leaves in it.
  void CheckRows(const proto::Table& table, std::span<const uint64_t> home) const;
  // Whether a row holds the same pushes with its key as the home row of its shard.
  std::string WhyDiffers(std::span<const float> row, std::span<const float> home,
                         const std::set<uint64_t>& pushed) const;

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
  const std::vector<uint64_t> home = plan_.sparse ? HomeKeys(table) : std::vector<uint64_t>();
  if (plan_.sparse) CheckRows(table, home);
  // Rows that are made late lack their first pushes.
  if (plan_.admits_late()) return;
  const uint64_t width = plan_.slots();
  for (const proto::Shard& shard : table.shards()) {
    ledger_.CheckFinal(
        {{TableId(table.id()), ShardIndex(shard.index())}, shard.generation()},
        plan_.sparse ? RowOf(home[shard.index()])
                     : std::span<const float>(audit_.values).subspan(shard.index() * width, width),
        slots_.auditors_first());
  }
}

std::span<const float> CountingWorkload::RowOf(uint64_t key) const {
  const auto place = std::ranges::find(audit_.keys, key) - audit_.keys.begin();
  return std::span<const float>(audit_.values).subspan(place * plan_.slots(), plan_.slots());
}

void CountingWorkload::CheckRows(const proto::Table& table, std::span<const uint64_t> home) const {
  std::map<uint64_t, std::set<uint64_t>> slots_of;
  for (uint64_t slot = 0; slot < plan_.slots(); ++slot) {
    for (const uint64_t key : FurtherKeys(slot)) slots_of[key].insert(slot);
    for (const uint64_t key : home) slots_of[key].insert(slot);
  }
  const bool is_whole = plan_.life_cycle.rows_max() == 0 && !plan_.admits_late();
  for (const proto::Shard& shard : table.shards()) {
    const uint64_t home_key = home[shard.index()];
    const ShardHistory history{{TableId(table.id()), ShardIndex(shard.index())},
                               shard.generation()};
    for (const uint64_t key : audit_.batch->KeysOf(shard.index())) {
      const std::span<const float> row = RowOf(key);
      const std::set<uint64_t>& pushed = slots_of[key];
      std::string why = WhyRowIsWrong(plan_, ledger_, history, row, pushed);
      if (why.empty() && is_whole) why = WhyDiffers(row, RowOf(home_key), pushed);
      if (why.empty()) continue;
      violations_.Add(name(),
                      absl::StrCat("shard ", shard.index(), ", the row of key ", key, ": ", why));
    }
  }
}

std::string CountingWorkload::WhyDiffers(std::span<const float> row, std::span<const float> home,
                                         const std::set<uint64_t>& pushed) const {
  for (uint64_t slot = 0; slot < row.size(); ++slot) {
    const float expected = pushed.contains(slot) ? home[slot] : 0;
    if (row[slot] == expected) continue;
    return absl::StrCat("it holds ", row[slot], " in column ", slot, ", and ", expected,
                        " belongs there");
  }
  return "";
}

std::string CountingWorkload::Report() const {
  return absl::StrCat(Describe(plan_), " pushed=", slots_.pushes_taken(),
                      " acknowledged=", outcomes_.acknowledged(), " failed=", outcomes_.failed());
}

}  // namespace

std::unique_ptr<Workload> MakeCountingWorkload(Random random, Violations& violations) {
  return std::make_unique<CountingWorkload>(DrawCountingPlan(random), violations);
}

std::unique_ptr<Workload> MakeGatedWorkload(Random random, Violations& violations) {
  CountingPlan plan = DrawCountingPlan(random);
  plan.gated = true;
  // Pushes of one update would have to share what a wild one leaves to them.
  plan.arrivals = 1;
  return std::make_unique<CountingWorkload>(plan, violations);
}

std::unique_ptr<Workload> MakeMomentumWorkload(Random random, Violations& violations) {
  CountingPlan plan = DrawCountingPlan(random);
  plan.momentum = true;
  // A value says when its push was applied, which is then an update of its own.
  plan.arrivals = 1;
  return std::make_unique<CountingWorkload>(plan, violations);
}

std::unique_ptr<Workload> MakeFunctionsWorkload(Random random, Violations& violations) {
  CountingPlan plan = DrawCountingPlan(random);
  plan.functions = true;
  // Functions are applied on arrival.
  plan.arrivals = 1;
  if (plan.contract == proto::Contract::BUFFERED) plan.contract = proto::Contract::ASYNC;
  return std::make_unique<CountingWorkload>(plan, violations);
}

std::unique_ptr<Workload> MakeSparseWorkload(Random random, Violations& violations) {
  CountingPlan plan = DrawCountingPlan(random);
  plan.sparse = true;
  // Another stream, so that the rest of the plan does not depend on it.
  plan.life_cycle = DrawLifeCycle(random.Split(50));
  // With four arrivals, an update of three pushes adds 4/3 for each, which is rounded.
  if (plan.arrivals < 4) plan.row_type = DrawRowType(random.Split(51));
  return std::make_unique<CountingWorkload>(plan, violations);
}

}  // namespace covey::sim
