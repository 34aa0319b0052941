// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_consensus.h"

#include <algorithm>

namespace covey::worker {

BucketConsensus AgreeOnBucket(std::span<const MemberProgress> members, size_t bucket,
                              Step steps_before) {
  BucketConsensus consensus;
  const BucketProgress* first = nullptr;
  Step most;
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    if (bucket >= members[rank].buckets.size()) {
      consensus.all_equal = false;  // It is new.
      continue;
    }
    const BucketProgress& member = members[rank].buckets[bucket];
    consensus.finished = std::max(consensus.finished, member.finished);
    consensus.pulls = std::max(consensus.pulls, member.pulls);
    consensus.pull_open = consensus.pull_open || member.waits_for_pull;
    if (first == nullptr) first = &member;
    if (member.waits_for_pull || member.finished != first->finished ||
        member.pulls != first->pulls) {
      consensus.all_equal = false;
    }
    if (!member.learned) continue;
    if (consensus.recovery_donor && *member.learned <= most) continue;
    most = *member.learned;
    consensus.recovery_donor = rank;
  }
  // Members of another group have made a new one.
  if (consensus.finished < steps_before) {
    consensus.finished = steps_before;
    consensus.all_equal = false;
  }
  return consensus;
}

std::optional<GradientNorm> AgreeOnNorm(std::span<const MemberProgress> members, Step step) {
  for (const MemberProgress& member : members) {
    if (member.norm && member.norm->step == step) return member.norm;
  }
  return std::nullopt;
}

RejoinPlan PlanRejoin(const RejoinInput& input) {
  RejoinPlan plan{.submitted = input.submitted};
  plan.redo = input.interrupted_step && input.begun > input.finished;
  plan.begun = plan.redo ? input.begun : input.finished;
  if (input.agreed > input.program_at) {
    const uint64_t ahead =
        input.submitted > input.program_at ? input.submitted.value() - input.program_at.value() : 0;
    plan.submitted = Step(input.agreed.value() + ahead);
  }
  return plan;
}

}  // namespace covey::worker
