// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults/fault_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tests/sim/config/sim_config.h"

namespace covey::sim {
namespace {

struct KindDraw {
  FaultKind kind;
  double chance;  // that a run has any
  uint64_t count_max;
  int shortest_ms;
  int longest_ms;
};

// The longest silences exceed every detector's time-out.
constexpr KindDraw kKinds[] = {
    {FaultKind::kKill, 0.7, 6, 20, 8000},      {FaultKind::kStop, 0.5, 6, 10, 20000},
    {FaultKind::kSlow, 0.3, 3, 100, 8000},     {FaultKind::kRestart, 0.2, 3, 0, 0},
    {FaultKind::kPartition, 0.4, 6, 50, 8000}, {FaultKind::kOneWayPartition, 0.4, 6, 50, 8000},
    {FaultKind::kIsolate, 0.3, 2, 50, 10000},  {FaultKind::kClog, 0.4, 12, 50, 6000},
    {FaultKind::kDisconnect, 0.5, 16, 0, 0},   {FaultKind::kDelay, 0.2, 4, 50, 8000},
    {FaultKind::kJitter, 0.2, 4, 50, 8000},    {FaultKind::kLoss, 0.2, 4, 50, 8000},
    {FaultKind::kDuplicate, 0.2, 4, 50, 8000}, {FaultKind::kCorrupt, 0.2, 4, 50, 8000},
    {FaultKind::kRate, 0.1, 2, 50, 4000},
};

constexpr double kServerDeathsChance = 0.25;
constexpr double kWorkerDeathsChance = 0.25;
constexpr double kHangsChance = 0.2;
constexpr uint64_t kHangsMax = 3;
constexpr double kSleepsChance = 0.15;
constexpr uint64_t kSleepsMax = 2;
constexpr double kZombiesChance = 0.35;
constexpr uint64_t kZombiesMax = 3;

bool IsBetweenTwo(FaultKind kind) {
  return kind == FaultKind::kPartition || kind == FaultKind::kOneWayPartition ||
         kind == FaultKind::kClog || kind == FaultKind::kDisconnect;
}

bool IsOfSending(FaultKind kind) { return kind >= FaultKind::kDelay; }

// Rounded to milliseconds, which a file states in few digits.
absl::Duration InMilliseconds(absl::Duration duration) {
  return std::max(absl::Trunc(duration, absl::Milliseconds(1)), absl::Milliseconds(1));
}

double InThousandths(double share) {
  return static_cast<double>(1 + static_cast<int>(share * 999)) / 1000;
}

void DrawArguments(Random& random, Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kSlow:
      fault.factor = 100;
      return;
    case FaultKind::kDelay:
    case FaultKind::kJitter:
      fault.by = InMilliseconds(DrawDuration(random, absl::Milliseconds(1), absl::Seconds(1)));
      return;
    case FaultKind::kLoss:
    case FaultKind::kDuplicate:
      fault.chance = InThousandths(0.5 * random.Uniform());
      return;
    case FaultKind::kCorrupt:
      fault.chance = InThousandths(0.2 * random.Uniform());
      return;
    case FaultKind::kRate:
      fault.bits_per_second = uint64_t{100'000} << random.Below(10);
      return;
    default:
      return;
  }
}

Fault DrawOne(Random& random, const KindDraw& draw, const FaultTargets& targets,
              absl::Duration safety) {
  Fault fault{.at = InMilliseconds(safety * random.Uniform()), .kind = draw.kind};
  if (draw.longest_ms > 0) {
    fault.duration = InMilliseconds(DrawDuration(random, absl::Milliseconds(draw.shortest_ms),
                                                 absl::Milliseconds(draw.longest_ms)));
  }
  size_t target = random.Below(targets.names.size());
  size_t other = random.Below(targets.hubs);
  if (other == target) other = (target + 1) % targets.names.size();
  if (IsBetweenTwo(draw.kind) && random.Chance(0.5)) std::swap(target, other);
  fault.target = targets.names[target];
  if (IsBetweenTwo(draw.kind)) fault.other = targets.names[other];
  if (IsOfSending(draw.kind)) {
    if (random.Chance(0.3)) fault.target = std::string(kEverybody);
    if (random.Chance(0.4)) fault.other = targets.names[other];
    if (fault.other == fault.target) fault.other.clear();
  }
  DrawArguments(random, fault);
  return fault;
}

// Kills some of `names` forever.
void DrawDeaths(Random random, double chance, std::vector<std::string> names, size_t most,
                absl::Duration safety, FaultPlan& plan) {
  if (!random.Chance(chance)) return;
  most = std::min(most, names.size());
  const uint64_t count = most == 0 ? 0 : 1 + random.Below(most);
  for (uint64_t i = 0; i < count; ++i) {
    const auto at = names.begin() + static_cast<ptrdiff_t>(random.Below(names.size()));
    plan.push_back(
        {.at = InMilliseconds(safety * random.Uniform()), .kind = FaultKind::kKill, .target = *at});
    names.erase(at);
  }
}

// A data loop of a server hangs for a moment, or for longer than the server waits for it.
void DrawHangs(Random random, const FaultTargets& targets, absl::Duration safety, FaultPlan& plan) {
  if (targets.servers.empty() || !random.Chance(kHangsChance)) return;
  const uint64_t count = 1 + random.Below(kHangsMax);
  for (uint64_t i = 0; i < count; ++i) {
    plan.push_back({.at = InMilliseconds(safety * random.Uniform()),
                    .duration = InMilliseconds(
                        DrawDuration(random, absl::Milliseconds(100), absl::Seconds(20))),
                    .kind = FaultKind::kHang,
                    .target = targets.servers[random.Below(targets.servers.size())],
                    .loop = 1 + random.Below(targets.data_loops)});
  }
}

// A machine sleeps, for up to many times as long as a lease: nothing runs, and its clock goes on.
void DrawSleeps(Random random, const FaultTargets& targets, absl::Duration safety,
                FaultPlan& plan) {
  if (targets.servers.empty() || !random.Chance(kSleepsChance)) return;
  const uint64_t count = 1 + random.Below(kSleepsMax);
  for (uint64_t i = 0; i < count; ++i) {
    const std::vector<std::string>& sleepers = random.Chance(0.7) ? targets.servers : targets.names;
    plan.push_back(
        {.at = InMilliseconds(safety * random.Uniform()),
         .duration = InMilliseconds(DrawDuration(random, absl::Seconds(2), absl::Minutes(10))),
         .kind = FaultKind::kStop,
         .target = sleepers[random.Below(sleepers.size())]});
  }
}

void DrawZombie(Random random, const FaultTargets& targets, absl::Duration safety,
                FaultPlan& plan) {
  const absl::Duration at = InMilliseconds(safety * random.Uniform());
  const absl::Duration patience = targets.patience;
  const absl::Duration unheard =
      InMilliseconds(DrawDuration(random, patience + absl::Seconds(1), patience * 4));
  // Messages that arrive just after the replacement has begun do the most harm.
  const absl::Duration on_the_way =
      InMilliseconds(patience + DrawDuration(random, absl::Milliseconds(50), absl::Seconds(4)));
  const std::string& zombie = targets.servers[random.Below(targets.servers.size())];
  const std::string& scheduler = targets.names[0];
  const auto add = [&](FaultKind kind, absl::Duration duration, const std::string& target,
                       const std::string& other) {
    plan.push_back(
        {.at = at, .duration = duration, .kind = kind, .target = target, .other = other});
  };
  add(FaultKind::kPartition, unheard, zombie, scheduler);
  for (const std::string& name : targets.names) {
    if (name == zombie || name == scheduler) continue;
    const bool serves =
        std::find(targets.servers.begin(), targets.servers.end(), name) != targets.servers.end();
    if (serves && random.Chance(0.8)) add(FaultKind::kClog, on_the_way, zombie, name);
    if (!serves && random.Chance(0.4)) add(FaultKind::kPartition, unheard, name, scheduler);
  }
}

void DrawZombies(Random random, const FaultTargets& targets, absl::Duration safety,
                 FaultPlan& plan) {
  if (targets.servers.size() < 2 || !random.Chance(kZombiesChance)) return;
  const uint64_t count = 1 + random.Below(kZombiesMax);
  for (uint64_t i = 0; i < count; ++i) DrawZombie(random.Split(i), targets, safety, plan);
}

}  // namespace

FaultPlan DrawFaults(Random random, const FaultTargets& targets, absl::Duration safety) {
  FaultPlan plan;
  for (const KindDraw& draw : kKinds) {
    if (!random.Chance(draw.chance)) continue;
    const uint64_t count = 1 + random.Below(draw.count_max);
    for (uint64_t i = 0; i < count; ++i) plan.push_back(DrawOne(random, draw, targets, safety));
  }
  DrawDeaths(random.Split(1), kServerDeathsChance, targets.mortal_servers,
             targets.server_deaths_max, safety, plan);
  DrawDeaths(random.Split(2), kWorkerDeathsChance, targets.mortal_workers,
             targets.worker_deaths_max, safety, plan);
  DrawZombies(random.Split(3), targets, safety, plan);
  DrawHangs(random.Split(4), targets, safety, plan);
  DrawSleeps(random.Split(5), targets, safety, plan);
  std::stable_sort(plan.begin(), plan.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return plan;
}

}  // namespace covey::sim
