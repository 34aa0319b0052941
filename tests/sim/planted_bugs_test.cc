// SPDX-License-Identifier: Apache-2.0

// A checker finds each bug that can be planted, within a thousand seeds.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/sim/seed_fleet.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr uint64_t kSeedsMax = 1000;

// The workload that finds each bug.
std::map<PlantedBug, absl::string_view> Workloads() {
  return {
      {PlantedBug::kApplyDuplicates, kCounting},
      {PlantedBug::kAnswerStaleReads, kStaleness},
      {PlantedBug::kForgetDedupOnTakeover, kCounting},
      {PlantedBug::kAcknowledgeBeforeReplicate, kCounting},
      {PlantedBug::kAcceptOldEpoch, kCounting},
      {PlantedBug::kDropClocksOnMove, kStaleness},
      {PlantedBug::kSkipMissingRecord, kCounting},
      {PlantedBug::kPromoteJoiningReplica, kCounting},
      {PlantedBug::kForgetUndurablePushes, kCounting},
      {PlantedBug::kPartialSumAsSuccess, kGroups},
      {PlantedBug::kSequenceWraps, kCounting},
      {PlantedBug::kAnswerBeforeLogged, kCounting},
      {PlantedBug::kWorkGivenTwice, kWork},
      {PlantedBug::kEpochGoesBack, kCounting},
      {PlantedBug::kHoldLentGradients, kStaleness},
      {PlantedBug::kIgnoreFlush, kCounting},
      {PlantedBug::kServeStaleCopy, kCounting},
      {PlantedBug::kManifestFirst, kSnapshot},
      {PlantedBug::kNoFolderSync, kSnapshot},
      {PlantedBug::kWindowsNotSaved, kSnapshot},
      {PlantedBug::kSlotsOfAnotherVersion, kSnapshot},
      {PlantedBug::kCutOneStepLate, kSnapshot},
      {PlantedBug::kItemsPastCut, kSnapshot},
      {PlantedBug::kRefersToOldContent, kSnapshot},
      {PlantedBug::kRemovesNeededFiles, kSnapshot},
      {PlantedBug::kLogLacksUpdates, kSnapshot},
      {PlantedBug::kServeUninitialized, kInitialize},
      {PlantedBug::kKeepEarlierState, kInitialize},
      {PlantedBug::kSumRowsTwice, kSparse},
      {PlantedBug::kEvictionDiffers, kSparse},
      {PlantedBug::kAdmissionForgets, kSparse},
      {PlantedBug::kLoseRowOnMove, kSparse},
      {PlantedBug::kSumDuplicatesTwice, kSparse},
      {PlantedBug::kRowMeanOfAll, kSnapshotSparse},
      {PlantedBug::kCutWithoutCopies, kSnapshotSparse},
      {PlantedBug::kNewMemberAhead, kWork},
      {PlantedBug::kMeanNotGiven, kGroups},
      {PlantedBug::kIgnoreNormGate, kGated},
      {PlantedBug::kForgetNormsOnTakeover, kGated},
      {PlantedBug::kBufferDuplicates, kStaleness},
      {PlantedBug::kForgetStepsOfGroup, kGroups},
      {PlantedBug::kLeaseOnAwakeClock, kCounting},
      {PlantedBug::kDeathAtFirstLook, kCounting},
      {PlantedBug::kHeedImpostors, kCounting},
      {PlantedBug::kSlotsStayBehind, kMomentum},
      {PlantedBug::kReadyWithEarlyAcks, kCounting},
      {PlantedBug::kForgetLiveProducers, kCounting},
      {PlantedBug::kCountWhatOthersHold, kSnapshotSparse},
      {PlantedBug::kSilenceFromRegistration, kCounting},
      {PlantedBug::kCopiesHoldItems, kWork},
      {PlantedBug::kAnswerAfterLease, kStaleness},
      {PlantedBug::kOldManifestsNeedNothing, kSnapshot},
      {PlantedBug::kLogNotSynced, kCounting},
      {PlantedBug::kLogFolderNotSynced, kCounting},
      {PlantedBug::kAppendAfterFailure, kCounting},
  };
}

// With which seed the search for a bug begins, where it takes minutes from 1 on
// (docs/FOUND_BUGS.md).
uint64_t FirstSeedFor(PlantedBug bug) {
  switch (bug) {
    case PlantedBug::kNewMemberAhead:
      return 40;
    case PlantedBug::kMeanNotGiven:
      return 750;
    // None of 1 to 1000 does.
    case PlantedBug::kForgetLiveProducers:
      return 34'000'130;
    // None of 1 to 60 do.
    case PlantedBug::kCountWhatOthersHold:
      return 31'100'640;
    case PlantedBug::kCopiesHoldItems:
      return 5'010'205;
    case PlantedBug::kAppendAfterFailure:
      return 450;
    default:
      return 1;
  }
}

// For each bug that the simulator does not look for: the reason, and the test that finds it.
std::map<PlantedBug, absl::string_view> Elsewhere() {
  return {
      {PlantedBug::kCountMessagesNotBytes,
       "memory is not simulated: client/engine/sending/server_window_test"},
      {PlantedBug::kIgnoreLease,
       "needs a server that is alone and cut off, and clients beside it: "
       "server/replication/replication_test"},
      {PlantedBug::kLeaseFromReply,
       "needs a slow reply, and a shard that another server gets in the same moment: "
       "common/runtime/member_test"},
      {PlantedBug::kJoiningCountsForLease,
       "needs a server that is cut off while it fills another one, and clients beside it: "
       "server/replication/replication_test"},
      {PlantedBug::kTakePushesOfOldViews,
       "needs two pushes of one producer on their way while a head changes: "
       "server/replication/replication_test"},
      {PlantedBug::kSleepThroughFlush,
       "needs an idle shard that fills a replica: server/replication/replication_joining_test"},
      {PlantedBug::kKeepFormerPlace,
       "needs two views that a head does not see: server/replication/replication_joining_test"},
      {PlantedBug::kListOfOlderLayout,
       "needs a list that is used again after a row's number was: server/sparse/row_places_test"},
      {PlantedBug::kSuspectNewcomers,
       "needs a worker that registers after a restart and is slow with its first items: "
       "scheduler/work/data_dispatcher_test"},
      {PlantedBug::kPiecesNotResent,
       "needs the loss of the first piece of newer content: "
       "server/replication/replication_joining_test"},
      {PlantedBug::kDropOvertakenPushes,
       "needs a query of an older generation's push, and then the death of its head: "
       "client/engine/durability_test"},
      {PlantedBug::kTakeValuesOfAnyNode,
       "needs values of a node that died, after another was named: "
       "server/shard/initial_values_test"},
      {PlantedBug::kHeedEarlierProbes,
       "needs a reply that comes after its node was heard, and a second probe under way: "
       "scheduler/nodes/membership_test"},
      {PlantedBug::kBeyondByOwnGroup,
       "needs a cut between the pushes of two groups for one step: "
       "common/contract/update_gate_test"},
      {PlantedBug::kTrustLogAsRead,
       "needs a failed sync, the end of the process before the next record, and then that of the "
       "machine: scheduler/log/file_log_test"},
      // In the simulator such a slice nearly always meets a step that has ended.
      {PlantedBug::kStaleGroupGeneration,
       "needs a slice and a death at one moment: worker/hybrid/hybrid_recovery_test"},
  };
}

// Runs in a process of its own: a check of the product may notice the bug first.
std::vector<std::string> ViolationsOf(uint64_t seed, const std::string& workload, PlantedBug bug) {
  const FleetResult result =
      RunFleet({.first_seed = seed, .workloads = {workload}, .planted_bug = bug, .repeat_every = 0},
               [](uint64_t, uint64_t) {});
  return result.violations.empty() ? std::vector<std::string>() : result.violations.begin()->second;
}

class PlantedBugsTest : public testing::TestWithParam<PlantedBug> {};

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedBugsTest,
                         testing::ValuesIn(std::vector<PlantedBug>(AllPlantedBugs().begin(),
                                                                   AllPlantedBugs().end())),
                         [](const auto& info) {
                           return absl::StrReplaceAll(PlantedBugName(info.param), {{"-", "_"}});
                         });

TEST_P(PlantedBugsTest, IsFound) {
  const std::map<PlantedBug, absl::string_view> elsewhere = Elsewhere();
  if (elsewhere.contains(GetParam())) GTEST_SKIP() << elsewhere.at(GetParam());
  const std::string workload(Workloads().at(GetParam()));
  const uint64_t first = FirstSeedFor(GetParam());
  for (uint64_t seed = first; seed < first + kSeedsMax; ++seed) {
    const std::vector<std::string> violations = ViolationsOf(seed, workload, GetParam());
    if (violations.empty()) continue;
    std::printf("%s\n",
                absl::StrFormat("%s is found by seed %d of %s: %s", PlantedBugName(GetParam()),
                                seed, workload, violations.front())
                    .c_str());
    // The seed alone is clean, so the violations come from the bug.
    EXPECT_EQ(absl::StrJoin(ViolationsOf(seed, workload, PlantedBug::kNone), "\n"), "");
    return;
  }
  ADD_FAILURE() << PlantedBugName(GetParam()) << " is not found in " << kSeedsMax << " seeds of "
                << workload;
}

}  // namespace
}  // namespace covey::sim
