// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/view.h"
#include "common/collective/plan.h"
#include "common/runtime/actor.h"
#include "worker/collective/collective.h"
#include "worker/collective/collective_run.h"
#include "worker/collective/early_slices.h"
#include "worker/collective/slice_sender.h"
#include "worker/group/group_messages.h"
#include "worker/group/group_round.h"
#include "worker/group/loss_detector.h"
#include "worker/group/member_progress.h"
#include "worker/group/plan_follower.h"
#include "worker/group/rendezvous.h"

namespace covey::worker {

// The group that this worker is in: it lets the members meet, runs their collectives, and follows
// the scheduler's plans. Each part is a machine of its own: the rendezvous (rendezvous.h), the runs
// (worker/collective/collective_run.h), the plans (plan_follower.h), lost slices (loss_detector.h).
//
//                  SetView: group is ACTIVE           rendezvous is over
//   without group ──────────────────────────▶ meeting ───────────────────▶ ready
//        ▲                                     ▲   ▲                         │ │
//        │                                     │   └── member or slice lost ─┤ │
//        └── no group any more ── Reform ──────┴────── other members ────────┘ │
//                                                                              │
//   meeting or ready ── deadline, or members disagree: all are told            │
//                   ├─ GroupAbort from another member; the view says BROKEN ◀──┘
//                   ▼
//                failed: every collective, present and future, ends with the same status
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
// generation meet without measuring. What they say of their progress (OnMeet, recovery_state) lets
// them agree on what is to be done again. The same happens when a member is lost while a generation
// meets, and when a member that has left is still waited for.
//
// A lost or damaged slice ends this round, as a death ends the generation, and the same members
// meet again in the next attempt. The first message of a later attempt takes a member along. What
// members say while they meet may be lost too: after a while they try again.
//
// A change of members without a loss: a view with another plan changes nothing by itself.
// Collectives carry whether all members whose values they hold know of such a plan
// (CollectiveResult.seen_epoch). The answer is the same on all members, in the same collective.
// There every member finishes what is under way and calls Reform.
//
// Actor-confined. Deterministic.
class GroupMachine {
 public:
  enum class Formation {
    // Members measure their links, tell each other, and agree on the step to go on from. Where
    // labels name no racks, they first find racks by their distances (measured_racks.h).
    kMeasured,
    // The same with default link costs.
    kAgreed,
    // Without a message: every member starts from its own step. For tests.
    kAtOnce,
  };
  struct Options {
    // A multiple of 4, the same on all members; smaller ones are for tests.
    size_t slice_bytes = kSliceBytesMax;
    Formation formation = Formation::kMeasured;
    // Of collectives that leave it open; kAutomatic: what is predicted to be fastest.
    Algorithm algorithm = Algorithm::kAutomatic;
  };
  GroupMachine() : GroupMachine(Options()) {}
  explicit GroupMachine(const Options& options);
  ~GroupMachine();

  // Before the group has formed; the same on all members.
  void SetAlgorithm(Algorithm algorithm) { options_.algorithm = algorithm; }
  // Called whenever the group has become ready.
  void OnReady(std::function<void(absl::Time, Outbox&)> callback) {
    on_ready_ = std::move(callback);
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
    on_interrupted_ = std::move(callback);
  }
  // While OnInterrupted runs: "group 1 has lost worker-2 (silent for 2.6 s)".
  const std::string& interruption() const { return interruption_; }
  // Asked how far this member has come whenever it meets the others: as many buckets as every other
  // member that has a model.
  void OnMeet(std::function<MemberProgress()> callback) { on_meet_ = std::move(callback); }

  // Takes in the newest view. If this worker is in no group yet, and the view has it in an ACTIVE
  // one, the members of that group begin to meet.
  void SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
               Outbox& outbox);

  bool formed() const { return plan_.follows(); }
  // Members have agreed. Collectives may be started before, and wait for it.
  bool ready() const { return rendezvous_.ready(); }
  // The following mean something once formed.
  GroupId id() const { return id_; }
  uint64_t generation() const { return generation_; }
  // Another one whenever what was under way has ended.
  GroupRound round() const {
    return {.group = id_, .generation = generation_, .attempt = attempt_};
  }
  // The members tell each other what each of them says of itself, and this one waits for the rest.
  bool meeting() const { return rendezvous_.exchanging(); }
  // Times that messages were lost or damaged, and members had to meet again.
  uint64_t losses() const { return losses_; }
  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  // Steps of other groups that were over when this group was made (Group.first_step): its own steps
  // count after them.
  uint64_t steps_before() const { return steps_before_; }
  // Once ready: the highest step that any member had finished when they met, and at least
  // steps_before().
  uint64_t agreed_step() const { return rendezvous_.agreed_step().value(); }
  // Once ready, when some member was interrupted: how far each has come, by rank; a member without
  // progress is new. The same on all members. Else empty.
  const std::vector<MemberProgress>& recovery_state() const { return rendezvous_.recovery_state(); }
  // Where the members are, by rank: what their labels say and, once ready, measured racks.
  const std::vector<TopologyPath>& paths() const { return rendezvous_.paths(); }
  // How many racks the members have found by their distances; 0: paths are those of the labels.
  size_t measured_racks() const { return rendezvous_.measured_racks(); }
  // Once ready: what the members have measured, the same on all of them.
  const LinkCosts& link_costs() const { return rendezvous_.costs(); }
  // Why the group can do nothing any more. UNAVAILABLE: names the member that died, left or was not
  // heard; DEADLINE_EXCEEDED: names the member waited for; INVALID_ARGUMENT: members started
  // different collectives.
  const absl::Status& failure() const { return failure_; }

  // The plan of a collective of this many encoded bytes that leaves the algorithm open.
  // Precondition: ready().
  std::shared_ptr<const Plan> PlanFor(CollectiveKind kind, size_t bytes) {
    return PlanOf(AlgorithmFor(kind, bytes));
  }

  // The next one of stream 0.
  CollectiveId NextPlain() { return {.stream = 0, .sequence = ++last_plain_}; }
  // Begins a collective. Callbacks may run inside. Preconditions: formed(), `parts` fit, the id is
  // above all of its stream in this generation.
  void Start(absl::Time now, Collective collective, Outbox& outbox);
  // A held collective's own values are in place. `contribution`: examples behind them, and whether
  // all members behind them know of a newer plan, both as the result said that they come from;
  // without, this member speaks for itself. Without effect once the collective has failed.
  struct Contribution {
    uint64_t samples = 0;
    uint64_t seen_epoch = 0;
  };
  void Contribute(absl::Time now, const CollectiveId& id, const Contribution& contribution,
                  Outbox& outbox);
  void Contribute(absl::Time now, const CollectiveId& id, Outbox& outbox);
  // This member cannot go on: ends everything here and tells the other members why.
  void Abort(absl::Time now, const absl::Status& status, Outbox& outbox);

  // The newest view has another plan for this worker: other members, another group, or none; or it
  // is the only member, and drains.
  bool change_pending() const { return plan_.change_pending(); }
  // Goes over to that plan. `step`: the newest one that this member has finished. If the plan has a
  // place for this worker, the members meet, and agreed_step() says where to go on. If not, this
  // worker is in no group any more: not formed() until a view has it in one again.
  //   FAILED_PRECONDITION: collectives are under way, or no change is pending.
  //   UNAVAILABLE: in no group; says why. CANCELLED: the same, because it was asked to go.
  absl::Status Reform(absl::Time now, uint64_t step, Outbox& outbox);

  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // Not done yet.
  size_t collectives() const { return runs_.size() - abandoned_ + waiting_.size(); }

 private:
  // Messages that were lost: group_losses.cc.
  // How long members may take to tell each other.
  absl::Duration Patience() const;
  // Queries those that collectives wait for, when it is time.
  void LookForLosses(absl::Time now, Outbox& outbox);
  absl::Time NextQuery() const;
  void QueryPeer(uint32_t rank, Outbox& outbox);
  void AnswerSlicesSent(uint32_t rank, Outbox& outbox);
  void ReceiveSlicesSent(uint32_t rank, uint64_t slices);
  // Follows members that have begun another formation; false: the message means nothing here.
  bool FollowAttempt(absl::Time now, const Message& message, const GroupSender& sender,
                     Outbox& outbox);
  // The members meet again with the next Wake: not now, when the caller may be about to start more
  // collectives.
  void RecordLoss(std::string why) {
    if (loss_.empty()) loss_ = std::move(why);
  }
  void RetryRendezvous(absl::Time now, const std::string& why, Outbox& outbox);
  void BeginAttempt(absl::Time now, uint32_t attempt, const std::string& why, Outbox& outbox);
  // The newest formation of which kept messages of the generation's members speak.
  uint32_t NewestAttempt(const std::deque<Message>& kept) const;
  // Interrupts what is under way. False: the group has failed.
  bool Interrupt(absl::Time now, const absl::Status& status, Outbox& outbox);

  // Membership: group_membership.cc.
  void FollowGroup(absl::Time now, Outbox& outbox);
  bool IsMember(const Message& message, uint32_t rank) const;
  bool MayBeNext(const GroupRound& round) const;
  Address AddressOf(uint32_t rank) const { return {members_[rank], 0}; }
  std::string NameOf(uint32_t rank) const { return view().NameOf(members_[rank]); }
  const ClusterView& view() const { return plan_.view(); }
  PlanFollower::Situation Situation() const;
  void EnsureRoute(uint32_t rank, Outbox& outbox);
  void TellSuperseded(const Message& message, const GroupRound& round, Outbox& outbox);
  void SupersedeGeneration(absl::Time now, Outbox& outbox);
  // Leaves this generation where it is.
  void Recover(absl::Time now, Outbox& outbox);
  // To the plan that PlanFollower decided on: another one, or none. The latter is told to OnLeft.
  void GoOver(absl::Time now, Outbox& outbox);
  // As Reform: there is none.
  absl::Status ChangeOver(absl::Time now, Outbox& outbox);

  // How a generation begins: group_formation.cc.
  void StartRendezvous(absl::Time now, const proto::Group& group, Outbox& outbox,
                       uint32_t attempt = 0);
  void FollowRendezvous(absl::Time now, Outbox& outbox);
  void SendRendezvous(Outbox& outbox);
  // A probe of this round to a member; `kind` is for the caller to set.
  Message MakeProbe(uint32_t peer, Outbox& outbox);
  void ReceiveProbe(absl::Time now, const Message& message, Outbox& outbox);
  void ReceiveHello(absl::Time now, const Message& message, Outbox& outbox);
  void Ready(absl::Time now, Outbox& outbox);

  // Collectives: group_machine.cc.
  void Release(absl::Time now, const CollectiveId& id, const Contribution* contribution,
               Outbox& outbox);
  Algorithm AlgorithmOf(const Collective& collective);
  Algorithm AlgorithmFor(CollectiveKind kind, size_t bytes);
  std::shared_ptr<const Plan> PlanOf(Algorithm algorithm);
  void Begin(absl::Time now, Collective collective, Outbox& outbox);
  bool IsUnderWay(uint64_t number) const;
  void ReceiveSlice(absl::Time now, const Message& message, Outbox& outbox);
  void ReceiveAbort(absl::Time now, const Message& message, Outbox& outbox);
  void Apply(absl::Time now, CollectiveRun& run, const Message& message, Outbox& outbox);
  void QueueSayings(CollectiveRun& run, Outbox& outbox);
  void Fail(absl::Time now, absl::Status status, Outbox& outbox);
  // Ends all collectives of this generation: those that have not arrived with `status`.
  void Stop(absl::Time now, const absl::Status& status, Outbox& outbox);
  // After every change: sends what may be sent, notices released frames, runs callbacks.
  void Advance(absl::Time now, Outbox& outbox);
  void Released(uint64_t number);
  void RunCallbacks(absl::Time now, Outbox& outbox);
  absl::Status TooFarAhead(uint32_t rank) const;
  absl::Status DeadlineStatus(const CollectiveRun& run) const;
  absl::Status MeetingDeadlineStatus() const;
  // "nothing from worker-1 and worker-2, which has left".
  std::string NothingFrom(std::vector<uint32_t> ranks) const;
  std::string Describe(const Collective& collective) const;

  Options options_;
  std::function<void(absl::Time, Outbox&)> on_ready_;
  std::function<void(absl::Time, const absl::Status&, Outbox&)> on_left_;
  std::function<uint64_t(absl::Time, Outbox&)> on_interrupted_;
  std::function<MemberProgress()> on_meet_;

  PlanFollower plan_;
  GroupId id_;
  uint64_t generation_ = 0;
  uint32_t attempt_ = 0;  // formations of the generation before this one
  std::vector<NodeId> members_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::map<NodeId, std::string> routes_;  // endpoints that the transport knows
  absl::Status failure_;
  EarlySlices before_forming_;  // of a generation to come

  std::string interruption_;
  uint64_t losses_ = 0;
  std::string loss_;  // noticed since the last Wake
  LossDetector loss_detector_;

  Rendezvous rendezvous_;
  uint64_t finished_step_ = 0;
  bool interrupted_ = false;  // on the way here
  bool has_been_ready_ = false;
  bool member_went_over_ = false;  // a member has left this generation for a newer one
  absl::Time rendezvous_by_ =
      absl::InfiniteFuture();  // the members of a generation to follow another
  absl::Status stopped_;       // why collectives of an older one ended
  uint64_t steps_before_ = 0;
  std::vector<Collective> waiting_;  // for the group to be ready

  std::map<Algorithm, std::shared_ptr<const Plan>> plans_;
  std::map<std::pair<CollectiveKind, size_t>, Algorithm> choices_;
  uint64_t last_plain_ = 0;
  std::map<uint32_t, uint64_t> last_started_;  // by stream
  uint64_t last_number_ = 0;
  std::map<uint64_t, std::unique_ptr<CollectiveRun>> runs_;  // by number
  std::map<CollectiveId, uint64_t> numbers_;                 // of runs
  std::deque<uint64_t> changed_;                             // numbers whose callbacks may be due
  EarlySlices early_;
  size_t abandoned_ = 0;      // runs that only wait for their frames
  size_t waiting_bytes_ = 0;  // in runs, for their turn to be added
  SliceSender sender_;
  absl::Time look_again_ = absl::InfiniteFuture();
};

}  // namespace covey::worker
