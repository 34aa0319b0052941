// SPDX-License-Identifier: Apache-2.0

// `bazel run -c opt //tests/sim -- --seed=42 --trace` replays one cluster; `--seeds=1000` runs
// many.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/planted_bug_switch.h"
#include "common/faults/fault_file.h"
#include "common/runtime/config_file.h"
#include "tests/sim/checkers/rare_events.h"
#include "tests/sim/run_seed.h"
#include "tests/sim/seed_fleet.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr uint64_t kSeedsThatShowEverything = 1000;

struct Flags {
  uint64_t seed = 0;
  uint64_t seeds = 1;
  uint64_t first_seed = 1;
  std::string workload = "all";
  std::string plant = "none";
  bool trace = false;
  std::string faults;
  bool print_faults = false;
  uint32_t jobs = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
};

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

absl::StatusOr<std::vector<std::string>> Workloads(const std::string& name) {
  const std::vector<std::string> all(std::begin(kWorkloads), std::end(kWorkloads));
  if (name == "all") return all;
  if (IsWorkload(name)) return std::vector<std::string>{name};
  return absl::InvalidArgumentError(
      absl::StrCat("--workload=", name, ": choose one of ", absl::StrJoin(kWorkloads, ", "),
                   ", staleness:KIND (KIND = ", absl::StrJoin(kContractKinds, ", "), ") or all"));
}

struct Plant {
  PlantedBug bug = PlantedBug::kNone;
  bool bent_slices = false;
};

std::string PlantNames() {
  std::vector<std::string> names = {std::string(PlantedBugName(PlantedBug::kNone)),
                                    std::string(kBentSlice)};
  for (const PlantedBug bug : AllPlantedBugs()) names.emplace_back(PlantedBugName(bug));
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<Plant> PlantOfName(const std::string& name) {
  if (name == PlantedBugName(PlantedBug::kNone)) return Plant();
  if (name == kBentSlice) return Plant{.bent_slices = true};
  const PlantedBug bug = PlantedBugOfName(name);
  if (bug != PlantedBug::kNone) return Plant{.bug = bug};
  return absl::InvalidArgumentError(
      absl::StrCat("--plant=", name, ": choose one of ", PlantNames()));
}

bool RunOne(const SeedOptions& options, bool trace) {
  SeedOptions traced = options;
  if (trace) {
    traced.trace = [](absl::Time now, const std::string& line) {
      Print(absl::StrFormat("%12.6f  %s\n", absl::ToDoubleSeconds(now - absl::UnixEpoch()), line));
    };
  }
  const SeedResult result = RunSeed(traced);
  std::string text = absl::StrCat("seed ", options.seed, " ", options.workload, "\n");
  absl::StrAppend(&text, "  ", result.configuration, "\n");
  for (const Fault& fault : result.faults) absl::StrAppend(&text, "  ", PrintFault(fault), "\n");
  absl::StrAppend(&text, "  ", result.report, "\n");
  for (const auto& [name, count] : result.counts) absl::StrAppend(&text, "  ", name, "=", count);
  absl::StrAppend(&text, "\n  ", result.events, " events, digest ",
                  absl::StrFormat("%016x", result.digest), "\n");
  for (const std::string& violation : result.violations) {
    absl::StrAppend(&text, "VIOLATION ", violation, "\n");
  }
  absl::StrAppend(&text,
                  result.violations.empty() ? "ok\n" : absl::StrCat(ReplayCommand(options), "\n"));
  Print(text);
  return result.violations.empty();
}

bool RunMany(const FleetOptions& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const uint64_t all = options.seeds * options.workloads.size();
  uint64_t printed = 0;
  uint64_t printed_bad = 0;
  const FleetResult result = RunFleet(options, [&](uint64_t runs, uint64_t bad) {
    if (bad == printed_bad && runs < printed + (terminal ? 10 : all / 100 + 1)) return;
    printed = runs;
    printed_bad = bad;
    Print(absl::StrCat(terminal ? "\r" : "", runs, " of ", all, " runs, ", bad, " with violations",
                       terminal ? "" : "\n"));
  });
  std::string text = terminal ? "\n" : "";
  for (const auto& [at, violations] : result.violations) {
    for (const std::string& violation : violations) {
      absl::StrAppend(&text, "VIOLATION seed ", at.first, " ", at.second, ": ", violation, "\n");
    }
    absl::StrAppend(&text,
                    ReplayCommand({.seed = at.first,
                                   .workload = at.second,
                                   .planted_bug = options.planted_bug,
                                   .bent_slices = options.bent_slices}),
                    "\n");
  }
  for (const auto& [name, count] : result.counts) {
    absl::StrAppend(&text, absl::StrFormat("%12d  %s\n", count, name));
  }
  bool all_happened = true;
  if (options.seeds >= kSeedsThatShowEverything && options.planted_bug == PlantedBug::kNone &&
      !options.bent_slices && options.workloads.size() > 1) {
    for (absl::string_view name : kExpectedEvents) {
      if (result.counts.count(std::string(name)) > 0) continue;
      all_happened = false;
      absl::StrAppend(&text, "NEVER HAPPENED ", name, "\n");
    }
  }
  absl::StrAppend(&text, result.runs, " runs, ", result.repeated, " of them twice, ", result.events,
                  " events: ", result.violations.size(), " with violations\n");
  Print(text);
  return result.violations.empty() && all_happened;
}

int Main(int argc, char** argv) {
  Flags flags;
  ConfigFile options("sim",
                     "Runs the real actors in a simulated cluster with faults, and checks them.");
  options.Add("seed", &flags.seed, "run this one seed and print what was drawn; 0 = run many");
  options.Add("seeds", &flags.seeds, "how many seeds to run");
  options.Add("first-seed", &flags.first_seed, "the first of them");
  options.Add(
      "workload", &flags.workload,
      absl::StrCat(absl::StrJoin(kWorkloads, ", "), ", staleness:KIND (of contract) or all"));
  options.Add("trace", &flags.trace, "print every event; with --seed");
  options.Add("plant", &flags.plant,
              absl::StrCat("plant a bug that must be found: one of ", PlantNames()));
  options.Add("faults", &flags.faults,
              "file with faults in place of those that are drawn; with --seed and --workload");
  options.Add("print-faults", &flags.print_faults,
              "only print the drawn faults, as such a file; with --seed and --workload");
  options.Add("jobs", &flags.jobs, "processes that share the seeds");
  if (const auto code = options.LoadForMain(argc, argv)) return *code;

  const auto workloads = Workloads(flags.workload);
  const auto planted = PlantOfName(flags.plant);
  for (const absl::Status& status : {workloads.status(), planted.status()}) {
    if (status.ok()) continue;
    Print(absl::StrCat(status.message(), "\n"));
    return 2;
  }
  std::optional<FaultPlan> faults;
  if (!flags.faults.empty()) {
    absl::StatusOr<FaultPlan> loaded = LoadFaultPlan(flags.faults);
    if (!loaded.ok()) {
      Print(absl::StrCat(loaded.status().message(), "\n"));
      return 2;
    }
    faults = *std::move(loaded);
  }
  bool ok = true;
  if (flags.print_faults) {
    for (const std::string& workload : *workloads) {
      const SeedResult drawn =
          RunSeed({.seed = flags.seed, .workload = workload, .draw_only = true});
      Print(absl::StrCat("# seed ", flags.seed, " ", workload, "\n", PrintFaultPlan(drawn.faults)));
    }
  } else if (flags.seed != 0) {
    for (const std::string& workload : *workloads) {
      ok = RunOne({.seed = flags.seed,
                   .workload = workload,
                   .planted_bug = planted->bug,
                   .bent_slices = planted->bent_slices,
                   .faults = faults},
                  flags.trace) &&
           ok;
    }
  } else {
    ok = RunMany({.first_seed = flags.first_seed,
                  .seeds = flags.seeds,
                  .workloads = *workloads,
                  .planted_bug = planted->bug,
                  .bent_slices = planted->bent_slices,
                  .jobs = std::max(1u, flags.jobs)});
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace covey::sim

int main(int argc, char** argv) { return covey::sim::Main(argc, argv); }
