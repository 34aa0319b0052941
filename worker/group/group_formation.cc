// SPDX-License-Identifier: Apache-2.0

// How a generation of a group begins: the part of GroupMachine that lets the members meet.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"

namespace covey::worker {
namespace {

// A generation that follows another one has this long to become ready.
constexpr absl::Duration kRendezvousMax = absl::Seconds(60);

}  // namespace

void GroupMachine::StartRendezvous(absl::Time now, const proto::Group& group, Outbox& outbox,
                                   uint32_t attempt) {
  id_ = GroupId(group.id());
  generation_ = group.generation();
  members_.clear();
  std::vector<TopologyPath> paths;
  for (const uint64_t node : group.members()) {
    members_.push_back(NodeId(node));
    const proto::Node* member = view().FindNode(NodeId(node));
    paths.push_back(ParseTopologyPath(member == nullptr ? "" : member->labels()));
  }
  size_ = static_cast<uint32_t>(members_.size());
  std::deque<Message> kept = before_forming_.Take({});
  attempt_ = std::max(attempt, NewestAttempt(kept));
  plan_.Follow(id_, generation_, members_);
  loss_detector_.Begin(size_);
  loss_.clear();
  sender_.ForgetCounts();
  const bool recovers = group.recovery_generation() == generation_ || attempt_ > 0;
  rank_ = static_cast<uint32_t>(std::find(members_.begin(), members_.end(), plan_.self()) -
                                members_.begin());
  COVEY_CHECK(rank_ < size_);  // GroupOf(self) found it.
  plans_.clear();
  choices_.clear();
  last_plain_ = 0;
  last_started_.clear();
  early_.Clear();
  member_went_over_ = false;
  if (has_been_ready_) rendezvous_by_ = std::min(rendezvous_by_, now + kRendezvousMax);
  steps_before_ = std::max<uint64_t>(group.first_step(), 1) - 1;
  // What the members know of their links from before will do, when time is short.
  rendezvous_.Begin({.round = round(),
                     .rank = rank_,
                     .members = members_,
                     .paths = std::move(paths),
                     .measures = options_.formation == Formation::kMeasured && !recovers,
                     .slice_bytes = options_.slice_bytes,
                     .patience = Patience(),
                     .first_agreed = Step(steps_before_),
                     .finished = Step(finished_step_),
                     .interrupted = interrupted_,
                     .progress = on_meet_ ? on_meet_() : MemberProgress()});
  for (const Collective& waiting : std::exchange(waiting_, {})) {
    if (!waiting.done) continue;
    waiting.done(now,
                 {.status = absl::UnavailableError(absl::StrCat(
                      Describe(waiting), ": the group has other members now; start it again"))},
                 outbox);
  }
  const bool at_once = options_.formation == Formation::kAtOnce && !interrupted_;
  if (at_once) rendezvous_.MeetAtOnce();
  for (const Message& message : kept) Receive(now, message, outbox);
  if (at_once) {
    has_been_ready_ = true;
    rendezvous_by_ = absl::InfiniteFuture();
    if (on_ready_) on_ready_(now, outbox);
    return;
  }
  if (rendezvous_.state() == Rendezvous::State::kListening && failure_.ok()) {
    rendezvous_.Start(now);
    FollowRendezvous(now, outbox);
  }
  Advance(now, outbox);
}

// Sends what the rendezvous has to say. Precondition: it was not ready before.
void GroupMachine::FollowRendezvous(absl::Time now, Outbox& outbox) {
  SendRendezvous(outbox);
  if (const std::optional<uint32_t> misfit = rendezvous_.misfit()) {
    Abort(now,
          absl::InvalidArgumentError(absl::StrCat("group ", id_.value(), ": ", NameOf(*misfit),
                                                  " trains another model than the others; ",
                                                  "give all members the same tables and options")),
          outbox);
  } else if (ready()) {
    Ready(now, outbox);
  }
}

void GroupMachine::SendRendezvous(Outbox& outbox) {
  for (Rendezvous::Outgoing& next : rendezvous_.TakeOutgoing()) {
    EnsureRoute(next.peer, outbox);
    next.message.set_to(AddressOf(next.peer));
    outbox.Send(std::move(next.message));
  }
}

Message GroupMachine::MakeProbe(uint32_t peer, Outbox& outbox) {
  EnsureRoute(peer, outbox);
  Message message;
  message.set_to(AddressOf(peer));
  proto::GroupProbe& body = *message.envelope.mutable_group_probe();
  WriteRound(round(), *body.mutable_round());
  body.set_from_rank(rank_);
  return message;
}

void GroupMachine::ReceiveProbe(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupProbe& probe = message.envelope.group_probe();
  const uint32_t rank = probe.from_rank();
  if (rank == rank_ || !IsMember(message, rank)) return;
  if (probe.has_slices_sent_query()) return AnswerSlicesSent(rank, outbox);
  if (probe.has_slices_sent()) return ReceiveSlicesSent(rank, probe.slices_sent().slices());
  const bool was_ready = ready();
  rendezvous_.Receive(now, rank, probe);
  if (was_ready) {
    SendRendezvous(outbox);
  } else {
    FollowRendezvous(now, outbox);
  }
}

void GroupMachine::ReceiveHello(absl::Time now, const Message& message, Outbox& outbox) {
  const uint32_t from = message.envelope.group_hello().from_rank();
  if (ready() || from == rank_ || !IsMember(message, from)) return;
  const absl::Status heard = rendezvous_.ReceiveHello(now, message);
  if (absl::IsDataLoss(heard)) {
    return RecordLoss(absl::StrCat("what ", NameOf(from), " said to ", NameOf(rank_),
                                   " was damaged: ", heard.message()));
  }
  if (!heard.ok()) {
    return Abort(now,
                 absl::InvalidArgumentError(
                     absl::StrCat("group ", id_.value(), ": ", NameOf(from), " sent ",
                                  heard.message(), "; all members must run the same version")),
                 outbox);
  }
  FollowRendezvous(now, outbox);
}

void GroupMachine::Ready(absl::Time now, Outbox& outbox) {
  plans_.clear();  // The members may be at other places than their labels say.
  has_been_ready_ = true;
  interrupted_ = false;
  rendezvous_by_ = absl::InfiniteFuture();
  if (on_ready_) on_ready_(now, outbox);
  for (Collective& waiting : std::exchange(waiting_, {})) {
    if (ready() && failure_.ok()) {
      Begin(now, std::move(waiting), outbox);
    } else if (waiting.done) {
      // A slice that came before was damaged.
      waiting.done(now, {.status = failure_.ok() ? stopped_ : failure_}, outbox);
    }
  }
  Advance(now, outbox);
}

}  // namespace covey::worker
