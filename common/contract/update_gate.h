// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/contract/contract.h"

namespace covey {

// The groups of the present view.
struct GroupCensus {
  const std::vector<LiveGroup>& live;  // in growing order of id
  size_t initial = 0;                  // ClusterView::initial_groups()
  Epoch epoch;                         // of the view
};

// A push as the policy sees it.
struct GatePush {
  GroupId group;  // 0: a plain client's
  Step step;      // of the group; under local the number of its round
  uint64_t samples = 0;
  Epoch view;  // that its sender knew
};

// Decides when received pushes become an update of a shard under the table's contract. It works on
// counts and times, not on gradients, so that servers and `covey simulate` decide alike.
//
//   bsp          one update per step, once every live group's push for it has come, summed in
//                growing order of group; steps are applied in growing order. A push for a step that
//                the shard is past already (its group joined late, or the contract was switched to
//                bsp while groups were apart) is an update of its own, on arrival
//   ssp, async   one update per push, on arrival
//   buffered(k)  one update per k arrivals, summed in that order. k is the number of live groups
//                when 0, otherwise it shrinks with the fraction of groups that are live, so that
//                the last pushes of a job are not held forever; at least 1
//   local        one update per round, summed in growing order of group, once every live group has
//                pushed a change that is not part of an update yet, or one of this round or a
//                later one; or, with a quorum, `grace` after that many groups have. So a change of
//                a round that is over counts in the next one; where none begins, a group's late
//                changes are an update once the shard may hold no more of them or, with a quorum,
//                when they have waited for `grace`, and for kLateWaitMin at least
//
// A live group is waited for from its first step on. Under bsp and local a push waits for the view
// that its sender knew, because groups that only this one has are waited for, too. Every push that
// was added becomes part of exactly one update, at the latest when no group is live any more.
// Depends only on the calls and their times. Limits: kHeldStepsPerGroupMax under bsp and local, and
// one more for the step that all groups wait for.
//
// Actor-confined; a value.
class UpdateGate {
 public:
  // The least time for which late changes wait for a round, where there is a quorum.
  static constexpr absl::Duration kLateWaitMin = absl::Seconds(5);

  explicit UpdateGate(const Contract& contract) : contract_(contract) {}

  // Pushes that become one update: the numbers that Add gave them, in the order of summation.
  struct Update {
    absl::InlinedVector<uint64_t, 2> pushes;
    uint64_t samples = 0;
  };

  // Whether the push may be added. Under bsp and local: INVALID_ARGUMENT: it comes from a plain
  // client, or its step counts already. ABORTED: the group's push for this step is held already.
  // RESOURCE_EXHAUSTED: the group is too far ahead.
  absl::Status Admit(GroupId group, Step step) const;

  // Adds an admitted push. Its number: 0, 1, … in the order of arrival.
  uint64_t Add(const GatePush& push);

  // Called instead of Add for a push that is part of no update: the group has reached this step.
  void Pass(GroupId group, Step step);

  // For the gate of a shard that another server served before: the group's pushes up to this step
  // are applied. Which later ones were applied is unknown, so no push of a lower step of any group
  // is taken for finished.
  void Resume(GroupId group, Step step);

  // The next update, if one is due. Called until there is none: after each Add and SwitchTo,
  // whenever the groups have changed, and at NextDue.
  std::optional<Update> TakeDue(absl::Time now, const GroupCensus& groups);

  // The end of the grace of a round; InfiniteFuture() when no update depends on the time. As of the
  // last TakeDue.
  absl::Time NextDue() const { return next_due_; }

  // Puts another contract in force. When its kind differs, all held pushes become due: one update
  // per step or round, or one of the buffer.
  void SwitchTo(const Contract& contract);

  // Held arrivals become due as an update, although more were to come. No effect under bsp and
  // local, where an update of fewer pushes would be a different one.
  void FlushPartialBuffer();

  // The pushes up to `last` of each group are to be applied before all later ones: from now on,
  // later pushes of these groups are held. Until Release; may be called again. Under bsp and local
  // all steps are equal; they may be lower than steps that groups had taken which have ended.
  void HoldBeyond(absl::btree_map<GroupId, Step> last) { held_beyond_ = std::move(last); }
  // Makes due what is held, except beyond these steps. Without effect under bsp, where a step
  // needs the pushes of all groups.
  void HurryHeld();
  // Ends it: pushes that were held are as if they arrived now, in the order of their arrival. A
  // switch to another kind of contract does so, too.
  void Release() { held_beyond_.clear(); }
  // Whether a push would be held by HoldBeyond.
  bool IsBeyond(GroupId group, Step step) const;
  // Whether pushes wait that are not beyond.
  bool HoldsUpTo() const;

  const Contract& contract() const { return contract_; }
  // Whether an update sums all held pushes in the order of arrival, so that the owner may keep a
  // running sum instead of the gradients.
  bool sums_on_arrival() const { return !ByStep(); }
  // Samples behind all held pushes.
  uint64_t samples_held() const { return samples_held_; }
  // Whether a push of the group is held.
  bool Holds(GroupId group) const;
  // Highest step, or round, that was part of an update or passed.
  Step last_step() const { return last_step_; }
  // Highest step, or round, of the group that was added or passed; 0 before the first.
  Step last_received(GroupId group) const;

 private:
  struct HeldPush {
    uint64_t number = 0;
    GatePush push;
  };
  using HeldStep = absl::btree_map<GroupId, HeldPush>;
  using Late = absl::btree_map<std::pair<GroupId, Step>, HeldPush>;

  bool ByStep() const {
    return contract_.kind == Contract::Kind::kBsp || contract_.kind == Contract::Kind::kLocal;
  }
  Step LastTaken(GroupId group) const;
  size_t StepsHeld(GroupId group) const;
  std::optional<Update> TakeStep(const GroupCensus& groups);
  std::optional<Update> TakeRound(absl::Time now, const GroupCensus& groups);
  std::optional<Update> TakeArrivals(const GroupCensus& groups);
  bool FirstStepIsBeyond() const;
  // The first of late_ that is not beyond.
  Late::const_iterator FirstLate() const;
  bool HasPart(GroupId group, Step round) const;
  bool QuorumWaitIsOver(absl::Time now, Step round);
  bool LateIsFull() const;
  bool LateWaitIsOver(absl::Time now);
  size_t ArrivalsPerUpdate(const GroupCensus& groups) const;
  // Pushes of the first held step, with `late` ones in between, in growing order of group.
  Update CutFirstStep(bool with_late);
  Update CutFirstLate();
  Update CutLate();
  Update CutArrivals();
  bool IsBeyond(const HeldPush& held) const;
  // Pushes that were held beyond, and are no longer, become arrivals while there are fewer.
  void TakeUpReleased(size_t arrivals_max);
  void Take(const HeldPush& held, Update& update);
  void NoteReceived(GroupId group, Step step);
  void NoteTaken(GroupId group, Step step);

  Contract contract_;
  uint64_t next_number_ = 0;
  uint64_t samples_held_ = 0;

  // bsp and local.
  absl::btree_map<Step, HeldStep> steps_;
  // Of steps at or below last_step_.
  Late late_;
  // local: since when there are late changes, and no round has begun.
  absl::Time late_since_ = absl::InfiniteFuture();
  // local: since when the first held round has its quorum.
  Step quorum_round_;
  absl::Time quorum_since_;
  absl::Time next_due_ = absl::InfiniteFuture();
  // The newest view of the senders.
  Epoch newest_view_;
  // The other contracts; and those of them that are beyond, or were when they came.
  std::deque<HeldPush> arrivals_;
  std::deque<HeldPush> beyond_;
  absl::btree_map<GroupId, Step> held_beyond_;
  // From before a switch.
  std::vector<Update> overdue_;  // the next one last

  // Highest step added and taken per group, and of all.
  absl::btree_map<GroupId, Step> received_;
  absl::btree_map<GroupId, Step> taken_;
  Step last_step_;
  // Highest step that had arrived when the contract was last switched: pushes at or below it may
  // come in any order.
  Step switched_at_;
};

}  // namespace covey
