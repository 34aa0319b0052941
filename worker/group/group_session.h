// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/collective/algorithm.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/collective/collective_engine.h"
#include "worker/collective/early_slices.h"
#include "worker/group/group_members.h"
#include "worker/group/group_round.h"
#include "worker/group/member_progress.h"
#include "worker/group/plan_follower.h"
#include "worker/group/rendezvous.h"

namespace covey::worker {

// How members of a new round learn of each other.
enum class RendezvousMode {
  // Members measure their links, tell each other, and agree on the step to go on from. Where
  // labels name no racks, they first find racks by their distances (measured_racks.h in
  // common/grouping).
  kMeasured,
  // The same with default link costs.
  kAgreed,
  // Without a message: every member starts from its own step. For tests.
  kAtOnce,
};

// One round of a group after the other, on one member: the members meet (rendezvous.h), and then
// run collectives (collective_engine.h). Which round comes next is for the owner to say.
//
//                    Begin            all have met
//   kWithoutGroup ──────────▶ kMeeting ──────────▶ kReady
//        ▲                     ▲  │                 │  │
//        │ End                 │  │ Stop, Supersede │  │ Begin, for an orderly change: kMeeting
//        │               Begin │  ▼                 │  │ End: kWithoutGroup
//        └──────────────────── kStopped ◀───────────┘  ▼
//
//   any ── Fail ──▶ kFailed: collectives, present and future, end with the same status
//
// Invariants:
//   1. Messages of another round, and of processes that are no members, have no effect.
//   2. In kStopped the round is over for this member: nothing is under way, and it waits for
//      another plan.
//   3. What is lost between members ends the round: they meet again, in the next attempt.
//
// Actor-confined. Deterministic.
class GroupSession : private CollectiveEngine::Host {
 public:
  enum class State { kWithoutGroup, kMeeting, kReady, kStopped, kFailed };
  // Whether a state may follow another one, as drawn above.
  static bool IsLegal(State from, State to);

  struct Options {
    // A multiple of 4, the same on all members; smaller ones are for tests.
    size_t slice_bytes = kSliceBytesMax;
    RendezvousMode rendezvous = RendezvousMode::kMeasured;
    // Of collectives that leave it open; kAutomatic: what is predicted to be fastest.
    Algorithm algorithm = Algorithm::kAutomatic;
    // As AwayWorkers: the time that the program gives its operations.
    absl::Duration patience_after_away = absl::Seconds(60);
  };
  // As those of Communicator.
  struct Callbacks {
    std::function<void(absl::Time, Outbox&)> ready;
    std::function<uint64_t(absl::Time, Outbox&)> interrupted;
    std::function<MemberProgress()> progress;
  };
  // `plan` outlives it, and follows the group before Begin.
  GroupSession(const Options& options, const PlanFollower& plan);
  Callbacks& callbacks() { return callbacks_; }

  State state() const { return state_; }
  bool ready() const { return state_ == State::kReady; }
  bool failed() const { return state_ == State::kFailed; }
  const GroupRound& round() const { return round_; }
  const GroupMembers& members() const { return members_; }
  const Rendezvous& rendezvous() const { return rendezvous_; }
  CollectiveEngine& engine() { return engine_; }
  const CollectiveEngine& engine() const { return engine_; }
  // Steps that were over when the group was made.
  uint64_t steps_before() const { return steps_before_; }
  // The newest step that this member has finished. For the rendezvous.
  Step finished() const { return finished_; }
  void SetFinished(Step step) { finished_ = step; }
  // A round has been ready, of whichever group.
  bool has_been_ready() const { return has_been_ready_; }

  // The members of this plan are about to meet; `attempt`: at the least, as kept messages may be of
  // a later one. Returns what was kept of the round, for the caller to receive before Meet.
  std::deque<Message> Begin(absl::Time now, const proto::Group& group, uint32_t attempt,
                            Outbox& outbox);
  void Meet(absl::Time now, Outbox& outbox);
  // Ends the round where it is, with the frames in the transport, which serve no member any more,
  // and tells the owner of the model (Callbacks::interrupted). False: the group has failed.
  bool Interrupt(absl::Time now, const absl::Status& status, Outbox& outbox);
  // The same when nothing but the meeting is under way.
  void Stop(absl::Time now, const absl::Status& status, Outbox& outbox);
  // The members will never meet: tells the others, who may not know. Precondition: kMeeting.
  void Supersede(Outbox& outbox);
  // This worker is in no group any more.
  void End();
  // Ends everything here, and tells the other members why.
  void Abort(absl::Time now, const absl::Status& status, Outbox& outbox) override;
  // The same without telling.
  void Fail(absl::Time now, const absl::Status& status, Outbox& outbox);

  // Keeps a message of a round that may come. `is_from_stranger`: its sender is not in the view. It
  // may be a member that has joined a moment ago, or anybody, so that such messages must not take
  // the room of others: none is kept beyond one part in kStrangersShare.
  void KeepForLater(const Message& message, bool is_from_stranger);
  std::deque<Message> TakeKept() { return kept_.Take({}); }
  // A slice, probe or hello of this round.
  void Receive(absl::Time now, const Message& message, Outbox& outbox);
  // Some member has left the cluster in order: what is under way ends by this time.
  void BoundDeadlines(absl::Time latest);
  void RefreshRoutes(Outbox& outbox) { members_.RefreshRoutes(outbox); }
  // As GroupMembers.
  void SetAway(absl::Time now, const std::vector<AwayWorker>& away) { members_.SetAway(now, away); }

  // The first deadline that has passed: of what, and which members are waited for.
  std::optional<absl::Status> Overdue(absl::Time now) const;
  // Why the members are to meet again, once; empty: nothing is known to be lost.
  std::string TakeLoss(absl::Time now);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

 private:
  void Enter(State to);
  absl::Duration Patience() const;
  bool meets_at_once() const { return options_.rendezvous == RendezvousMode::kAtOnce; }
  void FollowRendezvous(absl::Time now, Outbox& outbox);
  void MembersMet();
  void TellReady(absl::Time now, Outbox& outbox);
  void ReceiveProbe(absl::Time now, const Message& message, Outbox& outbox);
  void ReceiveHello(absl::Time now, const Message& message, Outbox& outbox);
  void SendProbe(uint32_t peer, Message probe, Outbox& outbox);

  // CollectiveEngine::Host.
  std::string NameOf(uint32_t rank) const override { return members_.NameOf(rank); }
  std::string NameOf(NodeId node) const override { return plan_.view().NameOf(node); }
  std::string NothingFrom(std::vector<uint32_t> ranks) const override {
    return members_.NothingFrom(std::move(ranks));
  }
  void SetReceiver(uint32_t rank, Message& slice, Outbox& outbox) override;
  uint64_t NewerPlanEpoch() const override {
    return plan_.change_pending() ? plan_.view().epoch().value() : 0;
  }
  void RecordLoss(std::string why) override {
    if (loss_.empty()) loss_ = std::move(why);
  }

  const Options options_;
  const PlanFollower& plan_;
  Callbacks callbacks_;

  State state_ = State::kWithoutGroup;
  GroupRound round_;
  uint64_t steps_before_ = 0;
  GroupMembers members_;
  Rendezvous rendezvous_;
  CollectiveEngine engine_;
  static constexpr size_t kStrangersShare = 16;
  EarlySlices kept_;  // messages of rounds to come
  std::string loss_;  // noticed since TakeLoss
  // The members of a generation that follows another one are to meet by this time.
  absl::Time meet_by_ = absl::InfiniteFuture();

  // What this member brings to a rendezvous.
  Step finished_;
  bool interrupted_ = false;  // since a round was ready
  bool has_been_ready_ = false;
};

}  // namespace covey::worker
