// SPDX-License-Identifier: Apache-2.0
#include "common/base/planted_bug.h"

#include "absl/base/attributes.h"
#include "common/base/check.h"

namespace covey {
namespace {

constexpr PlantedBug kAll[] = {
    PlantedBug::kApplyDuplicates,       PlantedBug::kAnswerStaleReads,
    PlantedBug::kForgetDedupOnTakeover, PlantedBug::kAcknowledgeBeforeReplicate,
    PlantedBug::kAcceptOldEpoch,        PlantedBug::kDropClocksOnMove,
    PlantedBug::kSkipMissingRecord,     PlantedBug::kPromoteJoiningReplica,
    PlantedBug::kForgetUndurablePushes, PlantedBug::kPartialSumAsSuccess,
    PlantedBug::kStaleGroupGeneration,  PlantedBug::kSequenceWraps,
    PlantedBug::kCountMessagesNotBytes, PlantedBug::kAnswerBeforeLogged,
    PlantedBug::kWorkGivenTwice,        PlantedBug::kIgnoreLease,
    PlantedBug::kEpochGoesBack,         PlantedBug::kHoldLentGradients,
    PlantedBug::kIgnoreFlush,           PlantedBug::kServeStaleCopy,
    PlantedBug::kManifestFirst,         PlantedBug::kNoFolderSync,
    PlantedBug::kWindowsNotSaved,       PlantedBug::kSlotsOfAnotherVersion,
    PlantedBug::kCutOneStepLate,        PlantedBug::kItemsPastCut,
    PlantedBug::kRefersToOldContent,    PlantedBug::kRemovesNeededFiles,
    PlantedBug::kLogLacksUpdates,       PlantedBug::kServeUninitialized,
    PlantedBug::kTakeValuesOfAnyNode,   PlantedBug::kKeepEarlierState,
    PlantedBug::kCutWithoutCopies,      PlantedBug::kSumRowsTwice,
    PlantedBug::kNewMemberAhead,        PlantedBug::kMeanNotGiven,
    PlantedBug::kEvictionDiffers,       PlantedBug::kAdmissionForgets,
    PlantedBug::kListOfOlderLayout,     PlantedBug::kLoseRowOnMove,
    PlantedBug::kSumDuplicatesTwice,    PlantedBug::kRowMeanOfAll,
    PlantedBug::kIgnoreNormGate,        PlantedBug::kForgetNormsOnTakeover,
    PlantedBug::kBufferDuplicates,      PlantedBug::kForgetStepsOfGroup,
    PlantedBug::kLeaseOnAwakeClock,     PlantedBug::kLeaseFromReply,
    PlantedBug::kJoiningCountsForLease, PlantedBug::kDeathAtFirstLook,
    PlantedBug::kHeedImpostors,         PlantedBug::kSlotsStayBehind,
    PlantedBug::kForgetLiveProducers,   PlantedBug::kSleepThroughFlush,
    PlantedBug::kTakePushesOfOldViews,  PlantedBug::kKeepFormerPlace,
    PlantedBug::kReadyWithEarlyAcks,    PlantedBug::kCountWhatOthersHold,
    PlantedBug::kHeedEarlierProbes,     PlantedBug::kSilenceFromRegistration,
    PlantedBug::kCopiesHoldItems,       PlantedBug::kSuspectNewcomers,
    PlantedBug::kPiecesNotResent,       PlantedBug::kDropOvertakenPushes,
    PlantedBug::kAnswerAfterLease,      PlantedBug::kOldManifestsNeedNothing,
    PlantedBug::kBeyondByOwnGroup,      PlantedBug::kLogNotSynced,
    PlantedBug::kLogFolderNotSynced,    PlantedBug::kAppendAfterFailure,
    PlantedBug::kTrustLogAsRead,
};

}  // namespace

absl::string_view PlantedBugName(PlantedBug bug) {
  switch (bug) {
    case PlantedBug::kNone:
      return "none";
    case PlantedBug::kApplyDuplicates:
      return "apply-duplicates";
    case PlantedBug::kAnswerStaleReads:
      return "answer-stale-reads";
    case PlantedBug::kForgetDedupOnTakeover:
      return "forget-dedup-on-takeover";
    case PlantedBug::kAcknowledgeBeforeReplicate:
      return "acknowledge-before-replicate";
    case PlantedBug::kAcceptOldEpoch:
      return "accept-old-epoch";
    case PlantedBug::kDropClocksOnMove:
      return "drop-clocks-on-move";
    case PlantedBug::kSkipMissingRecord:
      return "skip-missing-record";
    case PlantedBug::kPromoteJoiningReplica:
      return "promote-joining-replica";
    case PlantedBug::kForgetUndurablePushes:
      return "forget-undurable-pushes";
    case PlantedBug::kPartialSumAsSuccess:
      return "partial-sum-as-success";
    case PlantedBug::kStaleGroupGeneration:
      return "stale-group-generation";
    case PlantedBug::kSequenceWraps:
      return "sequence-wraps";
    case PlantedBug::kCountMessagesNotBytes:
      return "count-messages-not-bytes";
    case PlantedBug::kAnswerBeforeLogged:
      return "answer-before-logged";
    case PlantedBug::kWorkGivenTwice:
      return "work-given-twice";
    case PlantedBug::kIgnoreLease:
      return "ignore-lease";
    case PlantedBug::kEpochGoesBack:
      return "epoch-goes-back";
    case PlantedBug::kHoldLentGradients:
      return "hold-lent-gradients";
    case PlantedBug::kIgnoreFlush:
      return "ignore-flush";
    case PlantedBug::kServeStaleCopy:
      return "serve-stale-copy";
    case PlantedBug::kManifestFirst:
      return "manifest-first";
    case PlantedBug::kNoFolderSync:
      return "no-folder-sync";
    case PlantedBug::kWindowsNotSaved:
      return "windows-not-saved";
    case PlantedBug::kSlotsOfAnotherVersion:
      return "slots-of-another-version";
    case PlantedBug::kCutOneStepLate:
      return "cut-one-step-late";
    case PlantedBug::kItemsPastCut:
      return "items-past-cut";
    case PlantedBug::kRefersToOldContent:
      return "refers-to-old-content";
    case PlantedBug::kRemovesNeededFiles:
      return "removes-needed-files";
    case PlantedBug::kLogLacksUpdates:
      return "log-lacks-updates";
    case PlantedBug::kServeUninitialized:
      return "serve-uninitialized";
    case PlantedBug::kTakeValuesOfAnyNode:
      return "take-values-of-any-node";
    case PlantedBug::kKeepEarlierState:
      return "keep-earlier-state";
    case PlantedBug::kCutWithoutCopies:
      return "cut-without-copies";
    case PlantedBug::kSumRowsTwice:
      return "sum-rows-twice";
    case PlantedBug::kNewMemberAhead:
      return "new-member-ahead";
    case PlantedBug::kEvictionDiffers:
      return "eviction-differs";
    case PlantedBug::kAdmissionForgets:
      return "admission-forgets";
    case PlantedBug::kListOfOlderLayout:
      return "list-of-older-layout";
    case PlantedBug::kMeanNotGiven:
      return "mean-not-given";
    case PlantedBug::kLoseRowOnMove:
      return "lose-row-on-move";
    case PlantedBug::kSumDuplicatesTwice:
      return "sum-duplicates-twice";
    case PlantedBug::kRowMeanOfAll:
      return "row-mean-of-all";
    case PlantedBug::kIgnoreNormGate:
      return "ignore-norm-gate";
    case PlantedBug::kForgetNormsOnTakeover:
      return "forget-norms-on-takeover";
    case PlantedBug::kBufferDuplicates:
      return "buffer-duplicates";
    case PlantedBug::kForgetStepsOfGroup:
      return "forget-steps-of-group";
    case PlantedBug::kLeaseOnAwakeClock:
      return "lease-on-awake-clock";
    case PlantedBug::kLeaseFromReply:
      return "lease-from-reply";
    case PlantedBug::kJoiningCountsForLease:
      return "joining-counts-for-lease";
    case PlantedBug::kDeathAtFirstLook:
      return "death-at-first-look";
    case PlantedBug::kHeedImpostors:
      return "heed-impostors";
    case PlantedBug::kSlotsStayBehind:
      return "slots-stay-behind";
    case PlantedBug::kForgetLiveProducers:
      return "forget-live-producers";
    case PlantedBug::kSleepThroughFlush:
      return "sleep-through-flush";
    case PlantedBug::kTakePushesOfOldViews:
      return "take-pushes-of-old-views";
    case PlantedBug::kKeepFormerPlace:
      return "keep-former-place";
    case PlantedBug::kReadyWithEarlyAcks:
      return "ready-with-early-acks";
    case PlantedBug::kCountWhatOthersHold:
      return "count-what-others-hold";
    case PlantedBug::kHeedEarlierProbes:
      return "heed-earlier-probes";
    case PlantedBug::kSilenceFromRegistration:
      return "silence-from-registration";
    case PlantedBug::kCopiesHoldItems:
      return "copies-hold-items";
    case PlantedBug::kSuspectNewcomers:
      return "suspect-newcomers";
    case PlantedBug::kPiecesNotResent:
      return "pieces-not-resent";
    case PlantedBug::kDropOvertakenPushes:
      return "drop-overtaken-pushes";
    case PlantedBug::kAnswerAfterLease:
      return "answer-after-lease";
    case PlantedBug::kOldManifestsNeedNothing:
      return "old-manifests-need-nothing";
    case PlantedBug::kBeyondByOwnGroup:
      return "beyond-by-own-group";
    case PlantedBug::kLogNotSynced:
      return "log-not-synced";
    case PlantedBug::kLogFolderNotSynced:
      return "log-folder-not-synced";
    case PlantedBug::kAppendAfterFailure:
      return "append-after-failure";
    case PlantedBug::kTrustLogAsRead:
      return "trust-log-as-read";
  }
  COVEY_CHECK(false);
  return "";
}

absl::Span<const PlantedBug> AllPlantedBugs() { return kAll; }

#ifndef COVEY_PLANTED_BUGS
// A program that links planted_bug_switch.cc gets the definition there instead of this one.
ABSL_ATTRIBUTE_WEAK PlantedBug PlantedBugInForce() { return PlantedBug::kNone; }
#endif

}  // namespace covey
