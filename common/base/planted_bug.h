// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace covey {

// Defects that can be planted, to show that the project's own checks find them. The product has the
// places but no way to plant: `PlantedBugInForce` says kNone there. A test binary that links
// //common/base:planted_bug_switch plants one by name, from the environment variable
// COVEY_PLANTED_BUG or by PlantBug.
enum class PlantedBug {
  kNone,
  kApplyDuplicates,             // a push that was received before is applied again
  kAnswerStaleReads,            // readers get their answer at once, however stale
  kForgetDedupOnTakeover,       // a promoted replica knows of no earlier push
  kAcknowledgeBeforeReplicate,  // a push is durable as soon as the primary has it
  kAcceptOldEpoch,              // a replica takes records of a chain that is no more
  kDropClocksOnMove,            // a shard's content travels without its clock vector
  kSkipMissingRecord,           // a replica applies a record although the one before is missing
  kPromoteJoiningReplica,       // a replica that is not filled yet counts as one that is
  kForgetUndurablePushes,       // a client drops what it should send again to a new primary
  kPartialSumAsSuccess,         // a collective that has lost a member ends well, with what it has
  kStaleGroupGeneration,        // a member takes slices of an older generation of its group
  kSequenceWraps,               // a client's sequence numbers have 6 bits
  kCountMessagesNotBytes,       // queues are bounded by the number of requests
  kAnswerBeforeLogged,          // the scheduler answers before its log is durable
  kWorkGivenTwice,              // items of a lost worker are given out though they were finished
  kIgnoreLease,                 // a server alone with a shard serves it after its lease has ended
  kEpochGoesBack,               // a restarted scheduler forgets its newest record
};

// "apply-duplicates"; "none".
absl::string_view PlantedBugName(PlantedBug bug);
// All but kNone.
absl::Span<const PlantedBug> AllPlantedBugs();

// The same for the whole life of a process, or of a simulated run. Thread-safe.
PlantedBug PlantedBugInForce();
inline bool Planted(PlantedBug bug) { return PlantedBugInForce() == bug; }

}  // namespace covey
