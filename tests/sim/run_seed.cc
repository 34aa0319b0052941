// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/run_seed.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug_switch.h"
#include "common/base/small_limits_switch.h"
#include "scheduler/state/view_lookup.h"
#include "tests/sim/administrator.h"
#include "tests/sim/checkers/answered_pushes.h"
#include "tests/sim/checkers/applied_once.h"
#include "tests/sim/checkers/asked_history.h"
#include "tests/sim/checkers/chain_fence.h"
#include "tests/sim/checkers/death_evidence.h"
#include "tests/sim/checkers/departed_nodes.h"
#include "tests/sim/checkers/equal_replicas.h"
#include "tests/sim/checkers/equal_views.h"
#include "tests/sim/checkers/fenced_producers.h"
#include "tests/sim/checkers/forged_messages.h"
#include "tests/sim/checkers/kept_content.h"
#include "tests/sim/checkers/one_owner.h"
#include "tests/sim/checkers/rare_events.h"
#include "tests/sim/checkers/returned_frames.h"
#include "tests/sim/checkers/row_budget.h"
#include "tests/sim/checkers/shard_clocks.h"
#include "tests/sim/checkers/view_history.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/faults/fault_plan.h"
#include "tests/sim/workloads/make_workload.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {
namespace {

// A run that needs more events than this does not converge.
constexpr uint64_t kEventsMax = 3'000'000;

// Plants a bug during its own lifetime.
class Planting {
 public:
  explicit Planting(PlantedBug bug) { PlantBug(bug); }
  ~Planting() { PlantBug(PlantedBug::kNone); }
};

// Puts small limits in force during its own lifetime.
class Limits {
 public:
  explicit Limits(bool small) { SetSmallLimits(small); }
  ~Limits() { SetSmallLimits(false); }
};

// One in this many result slices, or pushes, is corrupted.
constexpr uint64_t kBentOneIn = 100;

bool BeginsWith(absl::string_view name, absl::string_view role) {
  return absl::StartsWith(name, absl::StrCat(role, "-"));
}

FaultPlan DrawFor(const SimConfig& config, const SimCluster& cluster, Random random) {
  FaultTargets targets{.names = cluster.names()};
  targets.hubs = config.all_links_fail ? targets.names.size() : 1 + config.servers;
  for (const std::string& name : targets.names) {
    if (BeginsWith(name, "server")) targets.servers.push_back(name);
    if (BeginsWith(name, "worker") || BeginsWith(name, "client")) {
      targets.mortal_workers.push_back(name);
    }
  }
  targets.patience = config.scheduler.silence_min;
  targets.data_loops = config.data_loops;
  targets.mortal_servers = targets.servers;
  // The first server is never asked to leave, so the work can finish.
  targets.mortal_servers.erase(targets.mortal_servers.begin());
  targets.server_deaths_max = 2;
  targets.worker_deaths_max = targets.mortal_workers.size() / 2;
  FaultPlan plan = DrawFaults(random, targets, config.safety);
  Random share = random.Split(1);
  std::erase_if(plan, [&](const Fault&) { return !share.Chance(config.fault_share); });
  return plan;
}

// A machine may sleep for longer than the drawn faults go on.
absl::Duration SafetyPhase(const SimConfig& config, const FaultPlan& faults) {
  absl::Duration safety = config.safety;
  for (const Fault& fault : faults) {
    if (fault.kind == FaultKind::kStop && fault.duration < absl::InfiniteDuration()) {
      safety = std::max(safety, fault.at + fault.duration);
    }
  }
  return safety;
}

// Checks periodically whether all shards have all their replicas again.
class WholeCluster {
 public:
  WholeCluster(const SimCluster& cluster, absl::Duration patience, Violations& violations)
      : cluster_(cluster), deadline_(cluster.healed_at() + patience), violations_(violations) {}

  // Whether they have, or the job must stop. `quiet`: no more changes of servers are requested.
  bool Look(bool quiet) {
    const absl::Time now = cluster_.simulator().now();
    if (now < next_) return was_whole_;
    next_ = now + absl::Seconds(1);
    const proto::ClusterView* view = cluster_.published();
    const std::string why = view == nullptr        ? "there is no scheduler"
                            : cluster_.must_stop() ? ""
                                                   : WhyNotWhole(*view);
    was_whole_ = quiet && why.empty();
    if (!was_whole_ && now > deadline_) {
      violations_.Add("repair", absl::StrCat(absl::FormatDuration(now - cluster_.healed_at()),
                                             " after the last fault ",
                                             quiet ? why : "the administrator still waits"));
    }
    return was_whole_;
  }

 private:
  const SimCluster& cluster_;
  const absl::Time deadline_;
  Violations& violations_;
  absl::Time next_ = absl::InfinitePast();
  bool was_whole_ = false;
};

// What alone makes a job stop by itself: no server has a shard of a table any more whose first
// values a program gave. Pure.
bool HasLostGivenValues(const proto::ClusterView& view) {
  const auto is_full = [&](const proto::Replica& replica) {
    const proto::Node* const node = scheduler::FindNode(view, NodeId(replica.node()));
    return !replica.joining() && node != nullptr && node->state() == proto::Node::ALIVE;
  };
  return std::any_of(view.tables().begin(), view.tables().end(), [&](const proto::Table& table) {
    return table.spec().initializer().kind() == proto::Initializer::GIVEN &&
           !table.has_initialization() && !table.has_origin() &&
           std::any_of(table.shards().begin(), table.shards().end(),
                       [&](const proto::Shard& shard) {
                         return std::none_of(shard.chain().begin(), shard.chain().end(), is_full);
                       });
  });
}

// Compares the servers' content periodically while the cluster works, and at the end.
class ComparedReplicas {
 public:
  ComparedReplicas(const SimCluster& cluster, Violations& violations)
      : cluster_(cluster), checker_(violations), budget_(violations) {}

  void Look() {
    if (!IsTime()) return;
    if (const proto::ClusterView* view = cluster_.published()) {
      const std::vector<ReplicaSnapshot> replicas = cluster_.Replicas();
      checker_.Look(*view, replicas);
      budget_.Look(*view, replicas);
    }
  }
  // Whether they are equal. Called when nothing but their convergence is pending.
  bool LookAtRest() {
    if (!IsTime()) return why_.empty();
    const proto::ClusterView* view = cluster_.published();
    why_ = view == nullptr ? "there is no scheduler"
                           : EqualReplicas::WhyUnequal(*view, cluster_.Replicas());
    return why_.empty();
  }
  const std::string& why() const { return why_; }

 private:
  bool IsTime() {
    const absl::Time now = cluster_.simulator().now();
    if (now < next_) return false;
    next_ = now + absl::Milliseconds(100);
    return true;
  }

  const SimCluster& cluster_;
  EqualReplicas checker_;
  RowBudget budget_;
  absl::Time next_ = absl::InfinitePast();
  std::string why_ = "nobody has looked";
};

// Long enough, several times over, for every message in flight to arrive after the work is done,
// and for what a slow store had begun to do.
constexpr absl::Duration kRest = absl::Minutes(5);

std::optional<ChainFence::Held> HeldBy(const server::Replica* replica) {
  if (replica == nullptr) return std::nullopt;
  return ChainFence::Held{.generation = replica->generation(),
                          .chain_epoch = replica->chain_epoch(),
                          .index = replica->content() == nullptr ? 0 : replica->content()->index()};
}

std::optional<ForgedMessages::Taken> TakenBy(const server::Replica* replica) {
  if (replica == nullptr || replica->content() == nullptr) return std::nullopt;
  return ForgedMessages::Taken{.index = replica->content()->index(), .durable = replica->durable()};
}

// Runs until `until`, a violation, or `done`.
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
  const Limits limits(config.small_limits);
  ViewHistory view_history(violations);
  DepartedNodes departed_nodes(violations);
  DeathEvidence death_evidence(violations);
  OneOwner one_owner(violations);
  ShardClocks shard_clocks(violations);
  AppliedOnce applied_once(violations);
  AskedHistory asked_history(violations);
  FencedProducers fenced_producers(violations);
  KeptContent kept_content(violations);
  ReturnedFrames returned_frames(violations);
  RareEvents rare_events(simulator);
  SimCluster cluster(simulator, config);
  AnsweredPushes answered_pushes(
      {.within = config.answer, .lease = config.scheduler.lease},
      [&cluster] { return cluster.healed_at(); }, violations);
  ChainFence chain_fence(
      [&cluster](absl::string_view server, uint32_t loop, ShardId shard) {
        return HeldBy(cluster.FindReplica(server, loop, shard));
      },
      violations);
  EqualViews equal_views(
      [&cluster](absl::string_view process) { return cluster.HeldView(process); }, violations);
  ForgedMessages forged_messages(
      [&cluster](absl::string_view server, uint32_t loop, ShardId shard) {
        return TakenBy(cluster.FindReplica(server, loop, shard));
      },
      violations);
  for (Observer* checker : std::initializer_list<Observer*>{
           &view_history, &departed_nodes, &one_owner, &shard_clocks, &applied_once,
           &fenced_producers, &chain_fence, &forged_messages, &asked_history, &kept_content,
           &returned_frames, &rare_events, &answered_pushes, &death_evidence, &equal_views}) {
    cluster.AddObserver(*checker);
  }
  workload->SetUp(cluster);
  if (options.bent_slices) cluster.BendSlices(kBentOneIn);

  Administration administration(config.elasticity.actions, violations);
  if (!administration.finished()) {
    cluster.AddClient("administrator", proto::CLIENT,
                      [&](Random) { return administration.MakeScript(); });
  }

  SeedResult result{.configuration = Describe(config)};
  result.faults = options.faults
                      ? *options.faults
                      : DrawFor(config, cluster, simulator.Draws(Simulator::Stream::kFaults));
  if (options.draw_only) return result;
  const absl::Status known = ValidateNames(result.faults, cluster.names());
  if (!known.ok()) {
    result.violations.push_back(absl::StrCat("faults: ", known.message()));
    return result;
  }

  // After the faults are drawn: no fault meets hostile processes, and the others keep theirs.
  if (config.network.forgery > 0) cluster.AddHostile();
  cluster.Start();
  cluster.Schedule(result.faults);
  ComparedReplicas replicas(cluster, violations);
  const auto watch = [&replicas] {
    replicas.Look();
    return false;
  };
  Run(simulator, simulator.now() + SafetyPhase(config, result.faults), watch, violations);
  cluster.Heal();
  WholeCluster whole(cluster, config.repair, violations);
  Run(
      simulator, simulator.now() + config.liveness,
      [&] { return watch() || (whole.Look(administration.finished()) && workload->Finished()); },
      violations);
  if (violations.empty() && !workload->Finished()) {
    violations.Add("liveness", absl::StrCat("not finished ", absl::FormatDuration(config.liveness),
                                            " after the last fault"));
  }
  if (violations.empty()) workload->Check();
  Run(
      simulator, simulator.now() + kRest, [&] { return replicas.LookAtRest(); }, violations);
  if (violations.empty() && !replicas.LookAtRest()) {
    violations.Add("equal_replicas", absl::StrCat("at rest, ", replicas.why()));
  }

  if (violations.empty() && cluster.must_stop() && !HasLostGivenValues(*cluster.published())) {
    violations.Add("must_stop", "the job must stop, and no table has lost values that were given");
  }

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
