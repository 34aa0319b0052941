// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/lateness_monitor.h"

#include <algorithm>

#include "common/collective/collective_kind.h"
#include "common/collective/sections.h"

namespace covey::worker {
namespace {

// Buckets are hardly ever more than a step apart.
constexpr size_t kStepsHeardMax = 8;

// Ranks whose values are in what `rank` sends up its tree, its own included. The section is one of
// a reduce-scatter, which has an owner.
void AddMembersBehind(const Plan& plan, const Section& section, uint32_t rank,
                      std::vector<uint32_t>& members) {
  for (const uint32_t operand : plan.Reduce(*section.owner, section.stripe, rank).operands) {
    if (operand == rank) {
      members.push_back(rank);
    } else {
      AddMembersBehind(plan, section, operand, members);
    }
  }
}

}  // namespace

void LatenessMonitor::Reset(size_t buckets) {
  by_bucket_.assign(buckets, Lateness());
  any_bucket_.clear();
}

void LatenessMonitor::Observe(absl::Time now, size_t bucket, const proto::GroupSlice& slice,
                              const Travel& travel) {
  const Step step(slice.sequence());
  for (const Section& section :
       SectionsOf(travel.plan, CollectiveKind::kReduceScatter, travel.parts, travel.elements, 0)) {
    const PartRange range = section.range;
    if (slice.first() < range.first || slice.first() >= range.first + range.count) continue;
    std::vector<uint32_t> members;
    // What goes to the owner as a result is of its sender alone: it is not to be added to.
    if (slice.phase() == proto::GroupSlice::SPREAD) {
      members.push_back(slice.from_rank());
    } else {
      AddMembersBehind(travel.plan, section, slice.from_rank(), members);
    }
    if (slice.samples() == 0) {
      by_bucket_[bucket].AddSteppedAside(step, members);
      continue;
    }
    by_bucket_[bucket].AddGiven(now, step, members);
    any_bucket_[step].AddGiven(now, step, members);
    if (any_bucket_.size() > kStepsHeardMax) any_bucket_.erase(any_bucket_.begin());
  }
}

absl::Time LatenessMonitor::DueAt(size_t bucket, Step next, const LatenessRule& rule) const {
  absl::Time due = by_bucket_[bucket].DueAt(next, rule);
  const auto heard = any_bucket_.find(next);
  if (submitted_ < next && heard != any_bucket_.end()) {
    due = std::min(due, heard->second.DueAt(next, rule));
  }
  return std::max(due, away_until_ + rule.grace);
}

void LatenessMonitor::NoteStepAside(Step step) {
  if (counted_ >= step) return;
  counted_ = step;
  ++steps_aside_;
}

}  // namespace covey::worker
