// SPDX-License-Identifier: Apache-2.0

// The quick part of the simulation; sim_slow_test has more seeds.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/faults/fault_file.h"
#include "tests/sim/run_seed.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr uint64_t kQuickSeeds = 40;
constexpr uint64_t kPlantedSeedsMax = 200;

class SimTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Workloads, SimTest,
                         testing::Values(std::string(kCounting), std::string(kStaleness),
                                         std::string(kGroups), std::string(kWork),
                                         std::string(kSnapshot), std::string(kInitialize),
                                         std::string(kSparse), std::string(kSnapshotSparse),
                                         std::string(kFunctions), std::string(kGated),
                                         std::string(kMomentum)),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{":", "_"}});
                         });

void ExpectClean(const SeedOptions& options) {
  const SeedResult result = RunSeed(options);
  EXPECT_TRUE(result.violations.empty()) << absl::StrJoin(result.violations, "\n") << "\n"
                                         << ReplayCommand(options);
}

TEST_P(SimTest, KeepsItsInvariants) {
  for (uint64_t seed = 1; seed <= kQuickSeeds; ++seed) {
    ExpectClean({.seed = seed, .workload = GetParam()});
  }
}

TEST_P(SimTest, OneSeedHasOneHistory) {
  const SeedResult first = RunSeed({.seed = 3, .workload = GetParam()});
  const SeedResult second = RunSeed({.seed = 3, .workload = GetParam()});
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.counts, second.counts);
  EXPECT_EQ(first.report, second.report);
}

TEST_P(SimTest, LookingDoesNotChangeTheHistory) {
  size_t lines = 0;
  const SeedResult traced =
      RunSeed({.seed = 4, .workload = GetParam(), .trace = [&](absl::Time, const std::string&) {
                 ++lines;
               }});
  EXPECT_EQ(traced.digest, RunSeed({.seed = 4, .workload = GetParam()}).digest);
  EXPECT_GT(lines, 100u);
}

TEST_P(SimTest, SeedsDiffer) {
  EXPECT_NE(RunSeed({.seed = 5, .workload = GetParam()}).digest,
            RunSeed({.seed = 6, .workload = GetParam()}).digest);
}

// First seed in which a planted bug causes a violation with these words; 0 = none does.
uint64_t FirstSeedThatSays(absl::string_view words, SeedOptions options) {
  for (options.seed = 1; options.seed <= kPlantedSeedsMax; ++options.seed) {
    for (const std::string& violation : RunSeed(options).violations) {
      if (absl::StrContains(violation, words)) return options.seed;
    }
  }
  return 0;
}

// Every contract, with groups that join and leave.
TEST(ContractTest, EachKeepsItsBound) {
  for (absl::string_view kind : kContractKinds) {
    for (uint64_t seed = 1; seed <= kQuickSeeds / 2; ++seed) {
      ExpectClean({.seed = seed, .workload = absl::StrCat(kStaleness, ":", kind)});
    }
  }
}

// Found in the values themselves, not only in what servers report.
TEST(PlantedBugTest, MissingDedupIsFound) {
  EXPECT_NE(0u, FirstSeedThatSays("not applied exactly once",
                                  {.workload = std::string(kCounting),
                                   .planted_bug = PlantedBug::kApplyDuplicates}));
}

TEST(PlantedBugTest, MissingStalenessGateIsFound) {
  EXPECT_NE(0u, FirstSeedThatSays("was given values without step",
                                  {.workload = std::string(kStaleness),
                                   .planted_bug = PlantedBug::kAnswerStaleReads}));
}

TEST(PlantedBugTest, BitsThatDifferAmongMembersAreFound) {
  EXPECT_NE(0u, FirstSeedThatSays("have different bits",
                                  {.workload = std::string(kGroups), .bent_slices = true}));
}

// Only checksums detect a bit that flips in flight: without them the values would show it.
TEST(PlantedBugTest, BentPushesAreFound) {
  EXPECT_NE(0u, FirstSeedThatSays("not applied exactly once",
                                  {.workload = std::string(kCounting), .bent_slices = true}));
}

// The bug skips the check whether a record comes from the server in front.
TEST(PlantedBugTest, BeliefInForgedRecordsIsFound) {
  EXPECT_NE(0u, FirstSeedThatSays("has forged", {.workload = std::string(kCounting),
                                                 .planted_bug = PlantedBug::kAcceptOldEpoch}));
}

// Hostile processes are heard, and refused for each reason.
TEST(ForgeryTest, IsRefusedForEachReason) {
  std::map<std::string, uint64_t> counts;
  for (uint64_t seed = 1; seed <= kQuickSeeds; ++seed) {
    for (const absl::string_view workload : {kCounting, kStaleness}) {
      for (const auto& [name, count] :
           RunSeed({.seed = seed, .workload = std::string(workload)}).counts) {
        counts[name] += count;
      }
    }
  }
  for (const absl::string_view reason : {"invalid_argument", "permission_denied", "unavailable"}) {
    EXPECT_GT(counts[absl::StrCat("forgery_refused_", reason)], 0u) << reason;
  }
}

// Bits of data flip in many runs, without consequence.
TEST(DamageTest, HappensAndIsNoticed) {
  uint64_t damaged = 0;
  for (uint64_t seed = 1; seed <= kQuickSeeds; ++seed) {
    const SeedResult result = RunSeed({.seed = seed, .workload = std::string(kCounting)});
    const auto count = result.counts.find("network_damaged");
    if (count == result.counts.end()) continue;
    damaged += count->second;
    EXPECT_TRUE(result.violations.empty()) << absl::StrJoin(result.violations, "\n");
  }
  EXPECT_GT(damaged, 0u);
}

// Replaying a file of faults gives the same history as drawing them.
TEST(FaultFileTest, PrintedFaultsGiveTheSameHistory) {
  SeedOptions options{.seed = 7, .workload = std::string(kCounting)};
  const SeedResult drawn = RunSeed(options);
  ASSERT_FALSE(drawn.faults.empty());
  auto read = ParseFaultPlan(PrintFaultPlan(drawn.faults), "printed");
  ASSERT_TRUE(read.ok()) << read.status();
  options.faults = *std::move(read);
  EXPECT_EQ(RunSeed(options).digest, drawn.digest);
  options.faults->pop_back();
  EXPECT_NE(RunSeed(options).digest, drawn.digest);
  options.faults = FaultPlan{{.kind = FaultKind::kKill, .target = "server-99"}};
  EXPECT_FALSE(RunSeed(options).violations.empty());
}

// Also for the members' pushes, whichever member sends them.
TEST(PlantedBugTest, MissingDedupOfGroupsIsFound) {
  EXPECT_NE(0u, FirstSeedThatSays("not applied exactly once",
                                  {.workload = std::string(kGroups),
                                   .planted_bug = PlantedBug::kApplyDuplicates}));
}

// Also for functions, which have no bytes of their own to query.
TEST(PlantedBugTest, MissingDedupOfFunctionsIsFound) {
  EXPECT_NE(0u, FirstSeedThatSays("an applied push is lost",
                                  {.workload = std::string(kFunctions),
                                   .planted_bug = PlantedBug::kApplyDuplicates}));
}

// Seeds that once showed a bug are kept forever.
TEST(RegressionTest, KeptSeedsAreClean) {
  std::ifstream file("tests/sim/regressions.txt");
  ASSERT_TRUE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    uint64_t seed = 0;
    std::string workload;
    words >> seed >> workload;
    ASSERT_TRUE(words && IsWorkload(workload)) << line;
    ExpectClean({.seed = seed, .workload = workload});
  }
}

}  // namespace
}  // namespace covey::sim
