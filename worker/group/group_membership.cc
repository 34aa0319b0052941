// SPDX-License-Identifier: Apache-2.0

// How a group changes its members, and how one leaves it: the part of GroupMachine that follows the
// view.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"

namespace covey::worker {
namespace {

// The last slices of a member that left in order may still be on their way.
constexpr absl::Duration kDepartedGrace = absl::Seconds(2);

}  // namespace

void GroupMachine::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                           Outbox& outbox) {
  plan_.SetView(self, std::move(view));
  if (!failure_.ok()) return;
  if (formed()) {
    FollowGroup(now, outbox);
  } else if (const proto::Group* group = plan_.FirstPlan(); group != nullptr) {
    StartRendezvous(now, *group, outbox);
  }
  // Messages kept for a later generation may be known now to be of a generation that never comes.
  if (!failure_.ok()) return;
  for (const Message& message : before_forming_.Take({})) Receive(now, message, outbox);
}

PlanFollower::Situation GroupMachine::Situation() const {
  using Phase = PlanFollower::Phase;
  return {.phase = rendezvous_.superseded() ? Phase::kSuperseded
                   : ready()                ? Phase::kReady
                                            : Phase::kForming,
          .waits_for_departed = member_went_over_ && collectives() > 0,
          .finished = Step(finished_step_)};
}

void GroupMachine::FollowGroup(absl::Time now, Outbox& outbox) {
  using Kind = PlanFollower::Decision::Kind;
  const PlanFollower::Decision decision = plan_.Decide(Situation());
  switch (decision.kind) {
    case Kind::kInterrupt:
      return Recover(now, outbox);
    case Kind::kFail:
      return Fail(now, decision.status, outbox);
    case Kind::kChangeOver:
    case Kind::kLeave:
      return GoOver(now, outbox);
    case Kind::kStay:
      if (rendezvous_.superseded()) return;
      break;
  }
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const proto::Node* member = view().FindNode(members_[rank]);
    if (member == nullptr || member->state() != proto::Node::LEFT) continue;
    for (auto& [number, run] : runs_) {
      run->collective().deadline = std::min(run->collective().deadline, now + kDepartedGrace);
    }
    for (Collective& waiting : waiting_) {
      waiting.deadline = std::min(waiting.deadline, now + kDepartedGrace);
    }
    rendezvous_.BoundDeadline(now + kDepartedGrace);
  }
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (routes_.contains(members_[rank])) EnsureRoute(rank, outbox);
  }
  Advance(now, outbox);
}

void GroupMachine::Recover(absl::Time now, Outbox& outbox) {
  interruption_ = plan_.DescribeLoss();
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      interruption_, " and goes on with other members, in the middle of its step; call ",
      "Group::Refresh, and start the collective again"));
  if (Planted(PlantedBug::kPartialSumAsSuccess)) {
    std::vector<uint64_t> numbers;
    for (const auto& [number, run] : runs_) numbers.push_back(number);
    for (const uint64_t number : numbers) {
      const auto found = runs_.find(number);
      if (found == runs_.end()) continue;
      CollectiveRun& run = *found->second;
      if (run.abandoned || run.told_arrived || run.collective().held) continue;
      run.told_arrived = true;
      const Collective::Callback arrived = std::move(run.collective().arrived);
      if (arrived) arrived(now, run.result(), outbox);
    }
  }
  if (!Interrupt(now, status, outbox)) return;
  GoOver(now, outbox);
}

void GroupMachine::GoOver(absl::Time now, Outbox& outbox) {
  const absl::Status status = ChangeOver(now, outbox);
  if (status.ok()) return;
  if (on_left_) {
    on_left_(now, status, outbox);
  } else {
    Fail(now, status, outbox);
  }
}

void GroupMachine::EnsureRoute(uint32_t rank, Outbox& outbox) {
  const std::string endpoint = view().EndpointOf(AddressOf(rank));
  std::string& route = routes_[members_[rank]];
  if (route == endpoint) return;
  route = endpoint;
  outbox.Route(AddressOf(rank), endpoint);
}

bool GroupMachine::IsMember(const Message& message, uint32_t rank) const {
  if (rank >= size_) return false;
  const proto::Node* node = view().FindNode(members_[rank]);
  return message.from() == AddressOf(rank) && node != nullptr &&
         Incarnation(node->incarnation()) == message.incarnation();
}

// Whether a message of another generation than the present one may be of one to come.
bool GroupMachine::MayBeNext(const GroupRound& round) const {
  if (round.group == id_ && round.generation <= generation_ && formed()) return false;
  const proto::Group* known = view().FindGroup(round.group);
  if (known == nullptr || known->generation() < round.generation) return true;  // Not heard of yet.
  const auto& members = known->members();
  return known->generation() == round.generation &&
         std::find(members.begin(), members.end(), plan_.self().value()) != members.end();
}

absl::Status GroupMachine::Reform(absl::Time now, uint64_t step, Outbox& outbox) {
  if (!failure_.ok()) return failure_;
  if (collectives() > 0 || !change_pending()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", id_.value(), " cannot change now: ", collectives(),
        " collectives are under way, and a change is ", change_pending() ? "" : "not ", "pending"));
  }
  finished_step_ = step;
  return ChangeOver(now, outbox);
}

absl::Status GroupMachine::ChangeOver(absl::Time now, Outbox& outbox) {
  const PlanFollower::Decision next = plan_.Next(Step(finished_step_));
  if (next.kind == PlanFollower::Decision::Kind::kChangeOver) {
    StartRendezvous(now, *next.group, outbox);
    return absl::OkStatus();
  }
  plan_.FollowNone();
  size_ = 0;
  rendezvous_.End();
  interrupted_ = false;
  rendezvous_by_ = absl::InfiniteFuture();
  return next.status;
}

// The sender waits for this member in a generation that it will never take part in, because it
// knows of a newer one. That generation can never begin, so the members that wait for it may go on.
void GroupMachine::TellSuperseded(const Message& message, const GroupRound& round, Outbox& outbox) {
  if (message.envelope.has_group_abort()) return;
  const proto::Group* known = view().FindGroup(round.group);
  const proto::Node* sender = view().FindNode(message.from().node);
  if (known == nullptr || known->generation() <= round.generation || sender == nullptr ||
      Incarnation(sender->incarnation()) != message.incarnation()) {
    return;
  }
  outbox.Route(message.from(), view().EndpointOf(message.from()));
  Message reply;
  reply.set_to(message.from());
  proto::GroupAbort& abort = *reply.envelope.mutable_group_abort();
  WriteRound(round, *abort.mutable_round());
  abort.set_reason("the group has a newer plan");
  abort.set_superseded(true);
  outbox.Send(std::move(reply));
}

// The members of this generation will never meet.
void GroupMachine::SupersedeGeneration(absl::Time now, Outbox& outbox) {
  if (ready() || rendezvous_.superseded()) return;
  rendezvous_.Supersede();
  // The member that knew of the newer plan may not have told all of them.
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    EnsureRoute(rank, outbox);
    Message message;
    message.set_to(AddressOf(rank));
    proto::GroupAbort& abort = *message.envelope.mutable_group_abort();
    WriteRound(round(), *abort.mutable_round());
    abort.set_reason("the group has a newer plan");
    abort.set_superseded(true);
    outbox.Send(std::move(message));
  }
  FollowGroup(now, outbox);
}

}  // namespace covey::worker
