// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace covey {

// Bugs that a test can plant, to show that the project's own checks find them. The product contains
// the places of the bugs, but no means to plant one: there `PlantedBugInForce` returns kNone. A
// test binary that links //common/base:planted_bug_switch plants one by name, from the environment
// variable COVEY_PLANTED_BUG or by PlantBug.
enum class PlantedBug {
  kNone,
  kApplyDuplicates,             // a push that was received before is applied again
  kAnswerStaleReads,            // reads are answered at once, however stale the values
  kForgetDedupOnTakeover,       // a promoted replica knows of no earlier push
  kAcknowledgeBeforeReplicate,  // a push is durable as soon as the head has it
  kAcceptOldEpoch,              // a replica takes records of a chain that has changed since
  kDropClocksOnMove,            // a shard's content travels without its clock vector
  kSkipMissingRecord,           // a replica applies a record although the one before is missing
  kPromoteJoiningReplica,       // a replica that is still filling counts as full
  kForgetUndurablePushes,       // a client drops pushes that it should resend to a new head
  kPartialSumAsSuccess,         // a collective that has lost a member succeeds with a partial sum
  kStaleGroupGeneration,        // a member takes slices of an older generation of its group
  kSequenceWraps,               // a client's sequence numbers have 6 bits
  kCountMessagesNotBytes,       // queues are bounded by the number of requests
  kAnswerBeforeLogged,          // the scheduler replies before its log is durable
  kWorkGivenTwice,              // items of a lost worker are given out though they were finished
  kIgnoreLease,                 // the only server of a shard serves it after its lease has expired
  kEpochGoesBack,               // a restarted scheduler forgets its newest record
  kHoldLentGradients,           // a server holds pushes in the memory of their senders
  kIgnoreFlush,                 // a server lets a push wait in a buffer although it is flushed
  kServeStaleCopy,              // a server with a device shows older values than the device has
  kManifestFirst,               // a part of a snapshot counts as stored before it is durable
  kNoFolderSync,                // names of files are not made durable
  kWindowsNotSaved,             // a snapshot lacks the pushes that shards remember
  kSlotsOfAnotherVersion,       // a snapshot has the optimizer's slots of another version
  kCutOneStepLate,              // one shard cuts its history a step later than the others
  kItemsPastCut,                // a snapshot counts examples of the step after its cut as finished
  kRefersToOldContent,          // a snapshot refers to content that has changed since
  kRemovesNeededFiles,          // files go with a snapshot although a later one refers to them
  kLogLacksUpdates,             // a flush's log of updates lacks some of them
  kServeUninitialized,          // a table is served before it has its initial values
  kTakeValuesOfAnyNode,         // a shard takes initial values of a node that is not to give them
  kKeepEarlierState,            // initial values leave the optimizer state of an earlier call
  kCutWithoutCopies,            // a cut of rows has those that changed before they were read
  kSumRowsTwice,                // the last of several pushes of rows counts twice in their update
  kNewMemberAhead,              // a new member begins in a pass to which its group has not gone yet
  kEvictionDiffers,             // a replica evicts other rows than the head
  kAdmissionForgets,            // keys that wait for admission do not travel with their shard
  kListOfOlderLayout,           // a list of keys is given rows as they lay before others went
  kMeanNotGiven,                // after a loss, members that lack a step's mean are not given it
  kLoseRowOnMove,               // a row of a shard does not travel with its content
  kSumDuplicatesTwice,          // a key that comes again in a batch counts twice there
  kRowMeanOfAll,                // under local, rows are divided by the samples of all pushes
  kIgnoreNormGate,              // pushes beyond the gate of a table are applied
  kForgetNormsOnTakeover,       // a promoted replica knows no usual norms
  kBufferDuplicates,            // a push that waits in a buffer is taken again when it comes again
  kForgetStepsOfGroup,          // a group's new generation may apply the steps of older ones again
  kLeaseOnAwakeClock,           // a process's clock stands still while its machine sleeps
  kLeaseFromReply,              // a lease counts from the arrival of the reply that grants it
  kJoiningCountsForLease,       // a head needs no lease once another replica is being filled
  kDeathAtFirstLook,            // one refused connection is evidence of death
  kHeedImpostors,               // a server takes messages in the name of another process
  kSlotsStayBehind,             // the optimizer's slots do not travel with a shard's content
  kForgetLiveProducers,         // a shard forgets producers that live
  kSleepThroughFlush,           // nothing wakes a shard to apply what it has acknowledged early
  kTakePushesOfOldViews,        // a new head takes pushes that were sent by views before it led
  kKeepFormerPlace,             // a replica that was refilled counts as holding what it held before
  kReadyWithEarlyAcks,       // a replica is ready although the head has acknowledged pushes alone
  kCountWhatOthersHold,      // a push is refused because of what other shards hold
  kHeedEarlierProbes,        // the reply to an earlier probe counts as that to a later one
  kSilenceFromRegistration,  // silence counts from the registration, not from its reply
  kCopiesHoldItems,          // after a restart items are given to a node that may never get them
  kSuspectNewcomers,         // after a restart a new node's items are given to others, too
  kPiecesNotResent,          // missing pieces of content are not sent again
  kDropOvertakenPushes,      // a push is dropped when a newer generation has pushed
  kAnswerAfterLease,         // readers that wait are answered after the lease
  kOldManifestsNeedNothing,  // files go before the manifest that refers to them
  kBeyondByOwnGroup,    // under bsp a step is beyond a cut only by the group that has pushed it
  kLogNotSynced,        // decisions count as durable before the log is synced
  kLogFolderNotSynced,  // a log that replaces another may lose its name
  kAppendAfterFailure,  // after a failed write the log goes on behind what that has left
  kTrustLogAsRead,      // a restarted scheduler takes all that it reads in its log for durable
};

// "apply-duplicates"; "none".
absl::string_view PlantedBugName(PlantedBug bug);
// All bugs, without kNone.
absl::Span<const PlantedBug> AllPlantedBugs();

// Constant for the life of a process, or of a simulated run. Thread-safe.
PlantedBug PlantedBugInForce();
inline bool Planted(PlantedBug bug) { return PlantedBugInForce() == bug; }

}  // namespace covey
