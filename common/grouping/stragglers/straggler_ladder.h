// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/home_return.h"
#include "common/grouping/stragglers/probation.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

// What to do about workers that slow their groups down: pure policy, run by the scheduler on the
// reports in heartbeats, and by the simulator.
//
//   slow for long ────▶ shift samples ──(not enough)──▶ regroup ──(no group fits)──▶ evict
//   late now and then ▶ partial reduce                     └─(neither allowed)─▶ partial reduce
//
// A member is a straggler when its seconds per sample exceed `slow_ratio` x the median of its group
// for `slow_reports` reports. Shares are in proportion to speed, so that all members finish
// together. When the slowest one still holds its group below `efficiency_min` of the summed speed
// of its members (by fixed costs that no share removes), it has to leave. Every decision is undone
// when its cause has gone, by a stricter test than the one that led to it. After each decision a
// group is left alone for `settle_reports` of each member, so that decisions do not oscillate.
//
// The measures in force are an input, not stored here: after a restart of its owner the ladder
// continues from the view. In a group of two, the faster member is the standard. Actor-confined.
// Deterministic.
class StragglerLadder {
 public:
  explicit StragglerLadder(const StragglerOptions& options)
      : options_(options), judge_(options), home_return_(options), probation_(options.probation) {}

  // Judges by these from the next report on. A lower `highest` takes no measure back that is in
  // force. A probation that has begun keeps its end.
  void SetOptions(const StragglerOptions& options);

  // Handles a member's newest report. `groups`: all ACTIVE ones; `group`: the reporter's among
  // them, null when it is in none. Returns at most one action, which the caller carries out before
  // the next call. O(size of the group), and O(groups) before a move.
  std::optional<StragglerAction> Report(NodeId member, const PaceReport& report,
                                        const GroupInForce* group,
                                        const std::vector<GroupInForce>& groups);

  // `evicted`: workers in no group whose home is set. Returns those whose probation is over, with
  // the group that they go to; when `home` is not among `groups`, `to` is 0 and the caller chooses.
  std::vector<StragglerAction> EndProbation(absl::Time now, const std::vector<GroupInForce>& groups,
                                            const std::vector<GroupMember>& evicted);

  // Removes a node that has departed.
  void Forget(NodeId member);

  // Nothing for a worker without reports.
  std::optional<StragglerJudge::Standing> StandingOf(NodeId member) const {
    return judge_.StandingOf(member);
  }

 private:
  struct GroupMemory {
    uint64_t generation = 0;
    size_t reports = 0;  // since the last decision
    size_t poor = 0;     // of the slowest member, in a row, with the efficiency too low
    size_t good = 0;     // of all members, in a row, with it good
  };

  std::optional<StragglerAction> Decide(const GroupInForce& group, const GroupMember& reporter,
                                        const std::vector<GroupInForce>& groups,
                                        GroupMemory& memory);
  std::optional<StragglerAction> Notice(const GroupMember& member);
  void ForgetPace(NodeId member);

  StragglerOptions options_;
  StragglerJudge judge_;
  HomeReturn home_return_;
  Probation probation_;
  std::map<GroupId, GroupMemory> groups_;
  std::set<NodeId> noticed_;  // by a kNotice
};

}  // namespace covey
