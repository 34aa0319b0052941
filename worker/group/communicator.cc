// SPDX-License-Identifier: Apache-2.0
#include "worker/group/communicator.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/net/sender.h"

namespace covey::worker {
namespace {

using State = GroupSession::State;

// The last slices of a member that left in order may still be on their way.
constexpr absl::Duration kDepartedGrace = absl::Seconds(2);

}  // namespace

void Communicator::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                           Outbox& outbox) {
  plan_.SetView(self, std::move(view));
  if (session_.failed()) return;
  if (formed()) {
    FollowPlan(now, outbox);
  } else if (const proto::Group* group = plan_.FirstPlan(); group != nullptr) {
    BeginRound(now, *group, 0, outbox);
  }
  // Messages kept for a later generation may be known now to be of a generation that never comes.
  if (session_.failed()) return;
  for (const Message& message : session_.TakeKept()) Receive(now, message, outbox);
}

void Communicator::BeginRound(absl::Time now, const proto::Group& group, uint32_t attempt,
                              Outbox& outbox) {
  if (session_.failed()) return;
  plan_.Follow(GroupId(group.id()), group.generation(),
               {group.members().begin(), group.members().end()});
  for (const Message& message : session_.Begin(now, group, attempt, outbox)) {
    Receive(now, message, outbox);
  }
  session_.Meet(now, outbox);
}

PlanFollower::Situation Communicator::Situation() const {
  using Phase = PlanFollower::Phase;
  return {.phase = session_.state() == State::kStopped ? Phase::kSuperseded
                   : ready()                           ? Phase::kReady
                                                       : Phase::kForming,
          .waits_for_departed = left_round_ == round() && collectives() > 0,
          .finished = session_.finished()};
}

void Communicator::FollowPlan(absl::Time now, Outbox& outbox) {
  using Kind = PlanFollower::Decision::Kind;
  const PlanFollower::Decision decision = plan_.Decide(Situation());
  switch (decision.kind) {
    case Kind::kInterrupt:
      return Recover(now, outbox);
    case Kind::kFail:
      return session_.Fail(now, decision.status, outbox);
    case Kind::kChangeOver:
    case Kind::kLeave:
      return GoOver(now, outbox);
    case Kind::kStay:
      if (session_.state() == State::kStopped) return;
      break;
  }
  if (session_.members().HasDeparted()) session_.BoundDeadlines(now + kDepartedGrace);
  session_.RefreshRoutes(outbox);
  engine().Advance(now, outbox);
}

void Communicator::Recover(absl::Time now, Outbox& outbox) {
  interruption_ = plan_.DescribeLoss();
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      interruption_, " and goes on with other members, in the middle of its step; call ",
      "Group::Refresh, and start the collective again"));
  if (Planted(PlantedBug::kPartialSumAsSuccess)) engine().TellPartialSums(now, outbox);
  if (session_.Interrupt(now, status, outbox)) GoOver(now, outbox);
}

void Communicator::GoOver(absl::Time now, Outbox& outbox) {
  const absl::Status status = ChangeOver(now, outbox);
  if (status.ok()) return;
  if (on_left_) {
    on_left_(now, status, outbox);
  } else {
    session_.Fail(now, status, outbox);
  }
}

absl::Status Communicator::Reform(absl::Time now, uint64_t step, Outbox& outbox) {
  if (session_.failed()) return failure();
  if (collectives() > 0 || !change_pending()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", id().value(), " cannot change now: ", collectives(),
        " collectives are under way, and a change is ", change_pending() ? "" : "not ", "pending"));
  }
  session_.SetFinished(Step(step));
  return ChangeOver(now, outbox);
}

absl::Status Communicator::ChangeOver(absl::Time now, Outbox& outbox) {
  const PlanFollower::Decision next = plan_.Next(session_.finished());
  if (next.kind == PlanFollower::Decision::Kind::kChangeOver) {
    BeginRound(now, *next.group, 0, outbox);
    return absl::OkStatus();
  }
  plan_.FollowNone();
  session_.End();
  return next.status;
}

bool Communicator::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const std::optional<GroupSender> sender = SenderOf(message);
  if (!sender) return false;
  if (session_.failed()) return true;
  const GroupRound& spoken = sender->round;
  const bool same_group = formed() && spoken.group == id();
  const bool stale = Planted(PlantedBug::kStaleGroupGeneration) && same_group &&
                     spoken.generation < generation() && message.envelope.has_group_slice();
  if (!same_group || (spoken.generation != generation() && !stale)) {
    ReceiveOfOtherRound(message, spoken, outbox);
    return true;
  }
  // A member that gives up does so for good, in whichever round.
  if (sender->rank && !stale && !FollowAttempt(now, message, *sender, outbox)) return true;
  if (message.envelope.has_group_abort()) {
    ReceiveAbort(now, message, outbox);
  } else {
    session_.Receive(now, message, outbox);
  }
  engine().Advance(now, outbox);
  return true;
}

// The sender may be a stranger, which must not fail anything.
void Communicator::ReceiveOfOtherRound(const Message& message, const GroupRound& round,
                                       Outbox& outbox) {
  const bool is_stranger = covey::SenderOf(message, plan_.view()) == nullptr;
  if (plan_.MayFollow(round.group, round.generation)) {
    return session_.KeepForLater(message, is_stranger);
  }
  if (message.envelope.has_group_abort() || !plan_.IsSuperseded(round.group, round.generation) ||
      is_stranger) {
    return;
  }
  // The sender waits for this member in a generation that it will never take part in, because it
  // knows of a newer one. That generation can never begin, so the members that wait for it may go
  // on.
  outbox.Route(message.from(), plan_.view().EndpointOf(message.from()));
  Message reply = MakeAbort(round, RoundEnd::kSuperseded, "the group has a newer plan");
  reply.set_to(message.from());
  outbox.Send(std::move(reply));
}

void Communicator::ReceiveAbort(absl::Time now, const Message& message, Outbox& outbox) {
  const std::optional<uint32_t> sender = session_.members().SenderOf(message);
  if (!sender) return;
  const proto::GroupAbort& abort = message.envelope.group_abort();
  if (abort.superseded() && ready()) {
    left_round_ = round();
    if (plan_.Decide(Situation()).kind == PlanFollower::Decision::Kind::kInterrupt) {
      Recover(now, outbox);
    }
    return;
  }
  // Members of a group that has run before go on without a member that gives up before they meet.
  if (abort.superseded() || (!ready() && session_.has_been_ready())) {
    if (session_.state() != State::kMeeting) return;
    session_.Supersede(outbox);
    return FollowPlan(now, outbox);
  }
  session_.Fail(now,
                absl::UnavailableError(
                    absl::StrCat(session_.members().NameOf(*sender), " gave up: ", abort.reason())),
                outbox);
}

bool Communicator::FollowAttempt(absl::Time now, const Message& message, const GroupSender& sender,
                                 Outbox& outbox) {
  const uint32_t attempt = sender.round.attempt;
  if (attempt == round().attempt) return true;
  if (attempt < round().attempt || attempt > kGroupAttemptsMax ||
      session_.state() == State::kStopped || *sender.rank == rank() ||
      !session_.members().IsFrom(message, *sender.rank)) {
    return false;
  }
  BeginAttempt(now, attempt,
               absl::StrCat(session_.members().NameOf(*sender.rank),
                            " has noticed that messages were lost or damaged"),
               outbox);
  return !session_.failed() && formed() && round() == sender.round;
}

void Communicator::RetryRendezvous(absl::Time now, const std::string& why, Outbox& outbox) {
  if (!formed() || session_.state() == State::kStopped) return;
  if (const proto::Node* left = plan_.FirstDepartedMember(); left != nullptr && !change_pending()) {
    return Abort(now,
                 absl::UnavailableError(absl::StrCat("group ", id().value(), ": ", why, ", and ",
                                                     left->name(),
                                                     " has left meanwhile; start the run again")),
                 outbox);
  }
  if (round().attempt == kGroupAttemptsMax) {
    return Abort(now,
                 absl::UnavailableError(absl::StrCat("group ", id().value(), ": ", why,
                                                     ", again and again; look at the network, ",
                                                     "then start the run again")),
                 outbox);
  }
  BeginAttempt(now, round().attempt + 1, why, outbox);
}

void Communicator::BeginAttempt(absl::Time now, uint32_t attempt, const std::string& why,
                                Outbox& outbox) {
  // There is a newer plan to go over to.
  if (change_pending()) return Recover(now, outbox);
  const proto::Group group = *plan_.view().GroupOf(plan_.self());
  ++losses_;
  interruption_ = absl::StrCat("group ", id().value(), ": ", why);
  const absl::Status status =
      absl::UnavailableError(absl::StrCat(interruption_, "; it goes on, and does its step again",
                                          "; call Group::Refresh, and start the collective again"));
  if (ready()) {
    if (session_.Interrupt(now, status, outbox)) BeginRound(now, group, attempt, outbox);
    return;
  }
  // Nothing was under way but the meeting: what waits for it waits on.
  CollectiveEngine::Waiting waiting = engine().TakeWaiting();
  session_.Stop(now, status, outbox);
  BeginRound(now, group, attempt, outbox);
  COVEY_CHECK(!ready());  // It takes a hello of another member.
  engine().Restore(now, std::move(waiting), outbox);
}

void Communicator::Wake(absl::Time now, Outbox& outbox) {
  if (!session_.failed()) {
    if (const std::optional<absl::Status> overdue = session_.Overdue(now)) {
      if (plan_.FirstLostMember() != nullptr) return Recover(now, outbox);
      return Abort(now, *overdue, outbox);
    }
    if (const std::string why = session_.TakeLoss(now); !why.empty()) {
      RetryRendezvous(now, why, outbox);
    }
  }
  session_.Wake(now, outbox);
}

}  // namespace covey::worker
