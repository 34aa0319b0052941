// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/away_worker.h"
#include "common/cluster/ids.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/cluster/view.h"
#include "common/collective/collective_kind.h"
#include "common/collective/plan.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/collective/collective.h"
#include "worker/group/group_messages.h"
#include "worker/group/group_round.h"
#include "worker/group/group_session.h"
#include "worker/group/member_progress.h"
#include "worker/group/plan_follower.h"

namespace covey::worker {

// The group that this worker is in: it lets the members meet, runs their collectives, and follows
// the scheduler's plans. It decides which round comes next, from what the plans say
// (plan_follower.h) and from what was lost; the rounds themselves, and the states, are those of
// group_session.h.
//
// Invariants:
//   1. A collective is named by stream and sequence (collective.h). Within a stream all members
//      start the same collectives in the same order; streams are independent.
//   2. Every sum is taken in the order that the plan states (common/collective/plan.h). It has the
//      same bits on every run and on every member, whatever the timing.
//   3. Data is sent in slices, each passed on as soon as it is complete (collective_run.h).
//   4. A slice is sent once. When a slice is lost or damaged, the members meet again.
//   5. A collective is done only when the transport holds none of its frames.
//   6. Slices of another round, of strangers, or of finished collectives have no effect.
//   7. Memory: kGroupEarlyBytesMax and kGroupEarlySlicesMax for slices that come before their turn.
//      Beyond them the group fails with RESOURCE_EXHAUSTED.
//
// A member that leaves in order while a collective waits for it fails that collective after a
// moment, in which its last slices may still arrive.
//
// A death: as soon as the view has a plan without the dead member, this generation stops where it
// is. OnInterrupted is called, every collective ends with UNAVAILABLE, and the members of the next
// generation meet without measuring. What they say of their progress (OnRendezvous,
// recovery_state) lets them agree on what is to be done again. The same happens when a member is
// lost while a generation meets, and when a member that has left is still waited for.
//
// A lost or damaged slice ends this round, as a death ends the generation, and the same members
// meet again in the next attempt. The first message of a later attempt takes a member along. What
// members say while they meet may be lost too: after a while they try again.
//
// A change of members without a loss: a view with another plan changes nothing by itself.
// Collectives carry whether all members whose values they hold know of such a plan
// (CollectiveResult.agreed_plan_epoch). The answer is the same on all members, in the same
// collective. There every member finishes what is under way and calls Reform.
//
// Actor-confined. Deterministic.
class Communicator {
 public:
  using Options = GroupSession::Options;
  Communicator() : Communicator(Options()) {}
  explicit Communicator(const Options& options) : session_(options, plan_) {}

  // Before the group has formed; the same on all members.
  void SetAlgorithm(Algorithm algorithm) { engine().SetAlgorithm(algorithm); }
  // Called whenever the group has become ready.
  void OnReady(std::function<void(absl::Time, Outbox&)> callback) {
    session_.callbacks().ready = std::move(callback);
  }

  // Called when a generation was left, or superseded before it was ready, and the newest plan has
  // no place for this worker: as if Reform had returned the status. Without a callback, the group
  // fails with the status.
  void OnLeft(std::function<void(absl::Time, const absl::Status&, Outbox&)> callback) {
    on_left_ = std::move(callback);
  }

  // Called before everything that is under way is stopped, because a member is gone or messages are
  // (interruption() says which). Returns the newest step that this member has finished.
  void OnInterrupted(std::function<uint64_t(absl::Time, Outbox&)> callback) {
    session_.callbacks().interrupted = std::move(callback);
  }
  // While OnInterrupted runs: "group 1 has lost worker-2 (silent for 2.6 s)".
  const std::string& interruption() const { return interruption_; }
  // Asked how far this member has come whenever it meets the others.
  void OnRendezvous(std::function<MemberProgress()> callback) {
    session_.callbacks().progress = std::move(callback);
  }

  // Takes in the newest view. If this worker is in no group yet, and the view has it in an ACTIVE
  // one, the members of that group begin to meet.
  void SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
               Outbox& outbox);

  // Workers that are away, of this group and of others, as the scheduler tells. Nothing that waits
  // for members is over its deadline before deadline_floor(); what waits at the servers for other
  // groups, before deadline_floor_of_all().
  void SetAway(absl::Time now, const std::vector<AwayWorker>& away) { session_.SetAway(now, away); }
  absl::Time deadline_floor() const { return session_.members().DeadlineFloor(); }
  absl::Time deadline_floor_of_all() const { return session_.members().away().DeadlineFloor(); }

  bool formed() const { return plan_.follows(); }
  // Members have agreed, and the group may have failed since. Collectives may be started before,
  // and wait for it.
  bool ready() const { return session_.rendezvous().ready(); }
  // The members of this round have met, and this member has not left it since. A failure leaves no
  // round.
  bool IsIn(const GroupRound& wanted) const {
    return round() == wanted && (ready() || session_.failed());
  }
  // The following mean something once formed.
  GroupId id() const { return round().group; }
  uint64_t generation() const { return round().generation; }
  // Another one whenever what was under way has ended.
  const GroupRound& round() const { return session_.round(); }
  // The members tell each other what each of them says of itself, and this one waits for the rest.
  bool meeting() const { return session_.rendezvous().exchanging(); }
  // Times that messages were lost or damaged, and members had to meet again.
  uint64_t losses() const { return losses_; }
  uint32_t rank() const { return session_.members().rank(); }
  std::string NameOf(uint32_t rank) const { return session_.members().NameOf(rank); }
  uint32_t size() const { return session_.members().size(); }
  // Steps of other groups that were over when this group was made (Group.first_step): its own steps
  // count after them.
  uint64_t steps_before() const { return session_.steps_before(); }
  // Once ready: the highest step that any member had finished when they met, and at least
  // steps_before().
  uint64_t agreed_step() const { return session_.rendezvous().agreed_step().value(); }
  // Once ready, when some member was interrupted: how far each has come, by rank; a member without
  // progress is new. The same on all members. Else empty.
  const std::vector<MemberProgress>& recovery_state() const {
    return session_.rendezvous().recovery_state();
  }
  // Where the members are, by rank: what their labels say and, once ready, measured racks.
  const std::vector<TopologyPath>& paths() const { return session_.rendezvous().paths(); }
  // How many racks the members have found by their distances; 0: paths are those of the labels.
  size_t measured_racks() const { return session_.rendezvous().measured_racks(); }
  // Once ready: what the members have measured, the same on all of them.
  const LinkCosts& link_costs() const { return session_.rendezvous().costs(); }
  // Why the group can do nothing any more. UNAVAILABLE: names the member that died, left or was not
  // heard; DEADLINE_EXCEEDED: names the member waited for; INVALID_ARGUMENT: members started
  // different collectives.
  const absl::Status& failure() const { return engine().failure(); }

  // The plan of a collective of this many encoded bytes that asks for this algorithm.
  // Precondition: ready().
  std::shared_ptr<const Plan> PlanFor(CollectiveKind kind, size_t bytes,
                                      Algorithm asked = Algorithm::kAutomatic) {
    return engine().PlanFor(kind, bytes, asked);
  }

  // The next one of stream 0.
  CollectiveId NextPlain() { return engine().NextPlain(); }
  // Begins a collective. Callbacks may run inside. Preconditions: formed(), `parts` fit, the id is
  // above all of its stream in this generation.
  void Start(absl::Time now, Collective collective, Outbox& outbox) {
    engine().Start(now, std::move(collective), outbox);
  }
  // A held collective's own values are in place; without `contribution` this member speaks for
  // itself. Without effect once the collective has failed.
  void Contribute(absl::Time now, const CollectiveId& id, const Contribution& contribution,
                  Outbox& outbox) {
    engine().Contribute(now, id, &contribution, outbox);
  }
  void Contribute(absl::Time now, const CollectiveId& id, Outbox& outbox) {
    engine().Contribute(now, id, nullptr, outbox);
  }
  // Not done yet.
  size_t collectives() const { return engine().collectives(); }
  // This member cannot go on: ends everything here and tells the other members why.
  void Abort(absl::Time now, const absl::Status& status, Outbox& outbox) {
    session_.Abort(now, status, outbox);
  }

  // The newest view has another plan for this worker: other members, another group, or none; or it
  // is the only member, and drains.
  bool change_pending() const { return plan_.change_pending(); }
  // Goes over to that plan. `step`: the newest one that this member has finished. If the plan has a
  // place for this worker, the members meet, and agreed_step() says where to go on. If not, this
  // worker is in no group any more: not formed() until a view has it in one again.
  //   FAILED_PRECONDITION: collectives are under way, or no change is pending.
  //   UNAVAILABLE: in no group; says why. CANCELLED: the same, because it was asked to leave.
  absl::Status Reform(absl::Time now, uint64_t step, Outbox& outbox);

  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return session_.NextWake(); }

 private:
  CollectiveEngine& engine() { return session_.engine(); }
  const CollectiveEngine& engine() const { return session_.engine(); }

  // The members of the plan meet, in this attempt or a later one.
  void BeginRound(absl::Time now, const proto::Group& group, uint32_t attempt, Outbox& outbox);
  PlanFollower::Situation Situation() const;
  void FollowPlan(absl::Time now, Outbox& outbox);
  // Leaves this generation where it is.
  void Recover(absl::Time now, Outbox& outbox);
  // To the plan that PlanFollower decided on: another one, or none. The latter is told to OnLeft.
  void GoOver(absl::Time now, Outbox& outbox);
  // As Reform: there is none.
  absl::Status ChangeOver(absl::Time now, Outbox& outbox);

  void ReceiveOfOtherRound(const Message& message, const GroupRound& round, Outbox& outbox);
  void ReceiveAbort(absl::Time now, const Message& message, Outbox& outbox);
  // Follows members that have begun another attempt; false: the message means nothing here.
  bool FollowAttempt(absl::Time now, const Message& message, const GroupSender& sender,
                     Outbox& outbox);
  // The same members meet again.
  void RetryRendezvous(absl::Time now, const std::string& why, Outbox& outbox);
  void BeginAttempt(absl::Time now, uint32_t attempt, const std::string& why, Outbox& outbox);

  std::function<void(absl::Time, const absl::Status&, Outbox&)> on_left_;

  PlanFollower plan_;
  GroupSession session_;
  std::string interruption_;
  uint64_t losses_ = 0;
  // The round that another member has left for a newer generation.
  std::optional<GroupRound> left_round_;
};

}  // namespace covey::worker
