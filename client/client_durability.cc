// Pushes that were received and are not durable yet, and who waits until they are; the rest of a
// ClientMachine is in client_machine.cc.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/client_machine.h"
#include "client/client_request.h"
#include "common/base/planted_bug.h"
#include "common/net/frame_checksum.h"

namespace covey::client {
namespace {

// How long a server keeps in mind to tell of a kept push that it is durable; then it is asked again.
constexpr absl::Duration kKeptDeadline = absl::Minutes(1);

}  // namespace

void ClientMachine::KeepUndurable(absl::Time now, Request& request, const Address& receiver) {
  ActiveOperation& owner = *request.owner;
  if (Planted(PlantedBug::kForgetUndurablePushes)) {
    owner.result.durable = false;
    return;
  }
  UndurablePushes::Push push{.request_id = request.request_id,
                             .shard = request.shard,
                             .request = PushBody(request),
                             .gradient = request.Gradient(),
                             .checksum = *request.checksum,
                             .peer = receiver,
                             // A late answer of a head that was replaced says nothing of the next.
                             .received = receiver == request.peer,
                             .asks = receiver == request.peer};
  if (kept_.HasRoomFor(push.gradient.size())) {
    owner.result.durable = false;
    // What was encoded is the client's own already.
    if (request.encoded.empty()) push.gradient = Buffer::CopyOf(push.gradient.bytes());
  } else {
    push.operation = owner.number;
    ++owner.undurable;
  }
  const bool late = !push.received;
  kept_.Keep(now, std::move(push));
  if (late) kept_.Hasten(now, *kept_.Find(request.request_id));
  next_wake_ = std::min(next_wake_, kept_.next_due());
}

void ClientMachine::SendKept(absl::Time now, Outbox& outbox) {
  const std::set<uint64_t> due = kept_.Due(now);
  for (const uint64_t id : due) {
    UndurablePushes::Push& push = *kept_.Find(id);
    const proto::Shard* shard = view_->FindShard(push.shard);
    const Address head = shard == nullptr ? Address() : view_->PrimaryOf(*shard);
    const bool asks = push.asks && push.peer == head;
    if (push.on_wire && !asks) {
      PeerAt(push.peer).window.Gone(push.gradient.size());
      bytes_in_flight_ -= push.gradient.size();
      push.on_wire = false;
    }
    if (head.node == NodeId()) {
      kept_.Postpone(now, push);
      continue;
    }
    // Stays due until the head has the earlier ones.
    if (kept_.HoldsBack(push)) continue;
    Peer& peer = PeerAt(head);
    if (!asks) {
      // Those that do not fit now stay due until an answer makes room.
      if (!peer.window.MaySend(push.gradient.size()) || !FitsBudget(push.gradient.size())) continue;
      push.peer = head;
      push.window_number = peer.window.Send(push.gradient.size());
      bytes_in_flight_ += push.gradient.size();
      push.on_wire = push.asks = true;
    }
    // Others may wait for a push that the head does not have: that answer is waited for as any.
    const absl::Duration usual =
        peer.round_trip.Patience(options_.retry_after, options_.retry_after_longest);
    const absl::Time next_try = now + usual * (1 << std::min(push.tries, 3));
    kept_.Sent(now, push);
    if (!push.received) kept_.Hasten(next_try, push);
    ++counters_.repeats;
    RouteTo(head, outbox);
    Message message;
    message.set_to(head);
    message.envelope.mutable_header()->set_request_id(id);
    message.envelope.mutable_header()->set_epoch(view_->epoch().value());
    FollowGroup(push);
    *message.envelope.mutable_push_request() = push.request;
    message.envelope.mutable_push_request()->set_deadline_ms(Milliseconds(kKeptDeadline));
    if (!asks) AddFrame(message, push.gradient, push.checksum);
    outbox.Send(std::move(message));
  }
  next_wake_ = std::min(next_wake_, kept_.next_due());
}

void ClientMachine::FollowGroup(UndurablePushes::Push& push) const {
  const proto::Group* group = view_->FindGroup(GroupId(push.request.group()));
  if (group == nullptr || group->generation() <= push.request.group_generation()) return;
  push.request.set_group_generation(group->generation());
  push.request.mutable_id()->set_producer_incarnation(group->generation());
}

bool ClientMachine::WasOvertaken(const UndurablePushes::Push& push, const Message& reply) const {
  if (push.request.group() == 0 || !absl::IsAborted(StatusOf(reply))) return false;
  const proto::Group* group = view_->FindGroup(GroupId(push.request.group()));
  return view_->epoch() < Epoch(reply.envelope.header().epoch()) ||
         (group != nullptr &&
          reply.envelope.push_reply().id().producer_incarnation() < group->generation());
}

void ClientMachine::AnswerKept(absl::Time now, UndurablePushes::Push& push, const Message& reply) {
  const absl::Status status = StatusOf(reply);
  // Of a head that was replaced: it says nothing of the one the push is on its way to.
  if (reply.from() != push.peer && !(status.ok() && reply.envelope.push_reply().durable())) return;
  if (push.on_wire) {
    ServerWindow& window = PeerAt(push.peer).window;
    window.Gone(push.gradient.size());
    bytes_in_flight_ -= push.gradient.size();
    push.on_wire = false;
    if (status.ok()) window.Answered(push.gradient.size(), reply.envelope.credit_bytes());
    if (absl::IsResourceExhausted(status)) window.Refused(push.window_number);
  }
  if (status.ok()) {
    const proto::PushReply& pushed = reply.envelope.push_reply();
    const uint64_t generation = pushed.state().generation();
    if (generation != 0 && generation != push.request.shard_generation()) return;
    if (pushed.durable()) {
      DropKept(push.request_id, absl::OkStatus());
    } else {
      kept_.SetReceived(true, push);
      push.asks = true;
      kept_.Postpone(now, push);
    }
  } else if (IsForNow(status) || absl::IsDeadlineExceeded(status) || WasOvertaken(push, reply)) {
    // A chain that takes longer than a try may yet make it durable; who refuses it has not got it.
    if (!absl::IsDeadlineExceeded(status)) {
      push.asks = false;
      kept_.SetReceived(false, push);
    }
    if (absl::IsResourceExhausted(status)) ++counters_.refusals;
    if (absl::IsDataLoss(status)) ++counters_.damaged;
    kept_.Hasten(now + RefusedFor(push.tries, reply), push);
  } else {
    // Who is taken for dead is told nothing of its pushes any more: it may be in.
    const auto code =
        absl::IsAborted(status) ? absl::StatusCode::kAborted : absl::StatusCode::kDataLoss;
    DropKept(
        push.request_id,
        absl::Status(code, absl::StrCat("push to ", NameOf(push.shard), " had been received, and ",
                                        view_->NameOf(push.peer.node),
                                        " refuses it now: ", status.message())));
  }
  next_wake_ = std::min(next_wake_, kept_.next_due());
}

void ClientMachine::DropKept(uint64_t request_id, absl::Status lost) {
  const UndurablePushes::Push push = kept_.Drop(request_id);
  if (push.on_wire) {
    PeerAt(push.peer).window.Gone(push.gradient.size());
    bytes_in_flight_ -= push.gradient.size();
  }
  if (!lost.ok()) {
    ++counters_.lost_pushes;
    ++lost_since_flush_;
    if (options_.push_lost) options_.push_lost(lost);
    if (lost_.ok() || (absl::IsAborted(lost_) && absl::IsDataLoss(lost))) lost_ = lost;
  }
  if (push.operation == 0) return;
  ActiveOperation& owner = *operations_.at(push.operation);
  --owner.undurable;
  if (!lost.ok() && owner.result.status.ok()) owner.result.status = std::move(lost);
  MarkIfOver(owner);
}

void ClientMachine::GiveUpDurability(ActiveOperation& active) {
  if (active.undurable == 0) return;
  std::vector<uint64_t> its;
  for (const auto& [id, push] : kept_.pushes()) {
    if (push.operation == active.number) its.push_back(id);
  }
  for (const uint64_t id : its) DropKept(id, absl::OkStatus());
}

void ClientMachine::Flush(absl::Time now, FlushScope scope, absl::Time deadline, Flushed done,
                          Outbox& outbox) {
  flushes_.push_back({.before_operation = scope == FlushScope::kAll ? next_operation_ : 0,
                      .before_request = next_request_id_,
                      .deadline = deadline,
                      .done = std::move(done)});
  next_wake_ = std::min(next_wake_, deadline);
  CheckFlushes(now, outbox);
}

absl::Status ClientMachine::LeftOf(const FlushWait& flush) const {
  for (const auto& [number, active] : operations_) {
    if (number >= flush.before_operation) break;
    if (active->operation.gradient.empty()) continue;
    for (const Request& request : active->requests) {
      if (request.finished) continue;
      return absl::DeadlineExceededError(
          absl::StrCat("push to ", NameOf(request.shard), ": no answer yet from ",
                       view_->NameOf(request.peer.node), "; see `covey status`"));
    }
  }
  const auto& kept = kept_.pushes();
  if (!kept.empty() && kept.begin()->first < flush.before_request) {
    const UndurablePushes::Push& push = kept.begin()->second;
    return absl::DeadlineExceededError(
        absl::StrCat("push to ", NameOf(push.shard), ": ", view_->NameOf(push.peer.node),
                     " has received it and does not say that it is durable (", kept.size(),
                     " pushes in all); see `covey status` for servers that are missing"));
  }
  return absl::OkStatus();
}

void ClientMachine::CheckFlushes(absl::Time now, Outbox& outbox) {
  std::vector<std::pair<FlushWait, absl::Status>> over;
  for (FlushWait& flush : std::exchange(flushes_, {})) {
    absl::Status left = LeftOf(flush);
    if (!left.ok() && now < flush.deadline) {
      flushes_.push_back(std::move(flush));
      continue;
    }
    if (left.ok() && lost_since_flush_ > 0) {
      left = absl::Status(
          lost_.code(),
          absl::StrCat(lost_since_flush_, " pushes ",
                       absl::IsAborted(lost_) ? "may have been" : "were",
                       " lost after a server had received them; one is: ", lost_.message()));
      lost_since_flush_ = 0;
      lost_ = absl::OkStatus();
    }
    over.emplace_back(std::move(flush), std::move(left));
  }
  // They may start operations and flushes.
  for (auto& [flush, status] : over) flush.done(now, status, outbox);
}

}  // namespace covey::client
