#include "tests/sim/run_seed.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug_switch.h"
#include "tests/sim/checkers/applied_once.h"
#include "tests/sim/checkers/asked_history.h"
#include "tests/sim/checkers/departed_nodes.h"
#include "tests/sim/checkers/fenced_producers.h"
#include "tests/sim/checkers/one_owner.h"
#include "tests/sim/checkers/rare_events.h"
#include "tests/sim/checkers/shard_clocks.h"
#include "tests/sim/checkers/view_history.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/sim_cluster.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {
namespace {

// A run that needs more events than this goes round in circles.
constexpr uint64_t kEventsMax = 3'000'000;

// Keeps a bug planted while it lives.
class Planting {
 public:
  explicit Planting(PlantedBug bug) { PlantBug(bug); }
  ~Planting() { PlantBug(PlantedBug::kNone); }
};

// Slices of results, of which one is bent.
constexpr uint64_t kBentOneIn = 100;

FaultPlan DrawFor(const SimConfig& config, size_t processes, Random random) {
  const size_t hubs = config.all_links_fail ? processes : 1 + config.servers;
  FaultPlan plan = DrawFaults(random, processes, hubs, config.safety);
  Random share = random.Split(1);
  std::erase_if(plan, [&](const Fault&) { return !share.Chance(config.fault_share); });
  return plan;
}

// Until `until`, or until something is wrong, or `done`.
void Run(Simulator& simulator, absl::Time until, const std::function<bool()>& done,
         Violations& violations) {
  while (violations.empty() && !done() && simulator.RunOne(until)) {
    if (simulator.events() < kEventsMax) continue;
    violations.Add("liveness",
                   absl::StrCat("more than ", kEventsMax, " events in ",
                                absl::FormatDuration(simulator.now() - absl::UnixEpoch())));
  }
}

}  // namespace

SeedResult RunSeed(const SeedOptions& options) {
  const Planting planting(options.planted_bug);
  Simulator simulator(options.seed);
  simulator.SetTrace(options.trace);
  Violations violations;

  const std::unique_ptr<Workload> workload =
      MakeWorkload(options.workload, simulator.Draws(Simulator::Stream::kWorkload), violations);
  SimConfig config = DrawConfig(simulator.Draws(Simulator::Stream::kConfig), workload->groups());
  config.scheduler.elastic = workload->is_elastic();
  workload->Adapt(config);
  ViewHistory view_history(violations);
  DepartedNodes departed_nodes(violations);
  OneOwner one_owner(violations);
  ShardClocks shard_clocks(violations);
  AppliedOnce applied_once(violations);
  AskedHistory asked_history(violations);
  FencedProducers fenced_producers(violations);
  RareEvents rare_events(simulator);
  SimCluster cluster(simulator, config);
  for (Observer* checker : std::initializer_list<Observer*>{
           &view_history, &departed_nodes, &one_owner, &shard_clocks, &applied_once,
           &fenced_producers, &asked_history, &rare_events}) {
    cluster.AddObserver(*checker);
  }
  workload->SetUp(cluster);
  if (options.bent_slices) cluster.BendSlices(kBentOneIn);

  SeedResult result;
  const FaultPlan plan =
      DrawFor(config, cluster.processes().size(), simulator.Draws(Simulator::Stream::kFaults));
  result.drawn.push_back(Describe(config));
  for (const Fault& fault : plan) result.drawn.push_back(Describe(fault, cluster.names()));

  cluster.Start();
  cluster.Schedule(plan);
  Run(
      simulator, simulator.now() + config.safety, [] { return false; }, violations);
  cluster.Heal();
  Run(
      simulator, simulator.now() + config.liveness, [&] { return workload->Finished(); },
      violations);
  if (violations.empty() && !workload->Finished()) {
    violations.Add("liveness", absl::StrCat("not finished ", absl::FormatDuration(config.liveness),
                                            " after the last fault"));
  }
  if (violations.empty()) workload->Check();

  result.violations = violations.found();
  result.digest = simulator.digest();
  result.events = simulator.events();
  result.counts = simulator.counts();
  result.report = workload->Report();
  return result;
}

std::string ReplayCommand(const SeedOptions& options) {
  std::string plant;
  if (options.planted_bug != PlantedBug::kNone) {
    plant = absl::StrCat(" --plant=", PlantedBugName(options.planted_bug));
  }
  if (options.bent_slices) plant = absl::StrCat(" --plant=", kBentSlice);
  return absl::StrCat("bazel run -c opt //tests/sim -- --seed=", options.seed,
                      " --workload=", options.workload, plant, " --trace");
}

}  // namespace covey::sim
