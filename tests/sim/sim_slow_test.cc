// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/sim/run_seed.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// 200 seeds of each workload and contract, in tests small enough to be sharded; sim_test has the
// first seeds, and tests/soak thousands.
constexpr uint64_t kFirstSeed = 1000;
constexpr int kTests = 10;
constexpr int kSeedsPerTest = 20;

class SimSlowTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Seeds, SimSlowTest, testing::Range(0, kTests));

TEST_P(SimSlowTest, KeepsItsInvariants) {
  for (int i = 0; i < kSeedsPerTest; ++i) {
    std::vector<std::string> workloads = {std::string(kCounting),       std::string(kGroups),
                                          std::string(kWork),           std::string(kSnapshot),
                                          std::string(kInitialize),     std::string(kSparse),
                                          std::string(kSnapshotSparse), std::string(kFunctions),
                                          std::string(kGated),          std::string(kMomentum)};
    for (absl::string_view kind : kContractKinds) {
      workloads.push_back(absl::StrCat(kStaleness, ":", kind));
    }
    for (const std::string& workload : workloads) {
      const SeedOptions options{
          .seed = kFirstSeed + static_cast<uint64_t>(GetParam() * kSeedsPerTest + i),
          .workload = workload};
      const SeedResult result = RunSeed(options);
      EXPECT_TRUE(result.violations.empty()) << absl::StrJoin(result.violations, "\n") << "\n"
                                             << ReplayCommand(options);
    }
  }
}

}  // namespace
}  // namespace covey::sim
