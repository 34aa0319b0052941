// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/cluster/ids.h"
#include "worker/group/member_progress.h"

namespace covey::worker {

// What the members of a group that was interrupted agree on for one bucket, from what each of them
// has told (member_progress.h). Pure: the same on all members.
struct BucketConsensus {
  // The newest step that any member has finished, or that others finished before the group was
  // made.
  Step finished;
  // The most pulls that any member has begun.
  uint64_t pulls = 0;
  // Some member has begun a pull that is not over.
  bool pull_open = false;
  // All members have finished the same step and pulls, no pull is open, and no member is new. If
  // not, all members pull.
  bool all_equal = true;
  // The rank that tells the others what it knows of LOCAL rounds: the first of those that know
  // most.
  std::optional<uint32_t> recovery_donor;
};

// `members`: by rank; a member without this bucket is new. `steps_before`: what others had finished
// when the group was made.
BucketConsensus AgreeOnBucket(std::span<const MemberProgress> members, size_t bucket,
                              Step steps_before);

// The norm by which all members clip the gradient of `step` when they do it again: that of the
// first member that tells one. Absent: none of them has updated anything by it. Pure.
std::optional<GradientNorm> AgreeOnNorm(std::span<const MemberProgress> members, Step step);

// What becomes of one bucket of this member under that consensus. Pure.
struct RejoinPlan {
  // The interrupted step is done again, under its number: no member has finished it.
  bool redo = false;
  // The newest step that has begun here, and the one that waiting submissions are for.
  Step begun;
  Step submitted;
};
struct RejoinInput {
  // Of this member, before: the newest step that had begun, whether it was interrupted, and the
  // step that waiting submissions are for.
  Step begun;
  bool interrupted_step = false;
  Step submitted;
  // The newest step that any member has finished.
  Step finished;
  // The program was at `program_at`, which the group calls `agreed`: a later step, if this member
  // comes from another group.
  Step program_at;
  Step agreed;
};
RejoinPlan PlanRejoin(const RejoinInput& input);

}  // namespace covey::worker
