#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/client_machine.h"
#include "client/client_request.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"

namespace covey::client {
namespace {

constexpr absl::Duration kRefusedRetryLongest = absl::Milliseconds(200);
constexpr absl::Duration kRefusedRetryFirst = absl::Milliseconds(2);
// Whatever a server says, its clients look in again.
constexpr absl::Duration kRetryAfterLongest = absl::Seconds(10);

// Refused for now: to be asked again, of the same server or another.
bool IsForNow(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ClientMachine::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const auto body = message.envelope.body_case();
  if (body != proto::Envelope::kPushReply && body != proto::Envelope::kPullReply) return false;
  const uint64_t id = message.envelope.header().request_id();
  const bool is_push = body == proto::Envelope::kPushReply;
  const auto found = by_request_id_.find(id);
  if (found != by_request_id_.end()) {
    if (found->second->pushes() == is_push) Answer(now, *found->second, message, outbox);
  } else if (UndurablePushes::Push* push = kept_.Find(id); push != nullptr && is_push) {
    AnswerKept(now, *push, message);
  } else {
    return true;  // An answer to a request that is over.
  }
  Pump(now, outbox);
  Retire(now, outbox);
  CheckFlushes(now, outbox);
  return true;
}

void ClientMachine::Answer(absl::Time now, Request& request, const Message& reply, Outbox& outbox) {
  const absl::Status status = StatusOf(reply);
  if (IsForNow(status)) {
    BackOff(now, request, reply, status);
    return;
  }
  if (!status.ok()) {
    Finish(now, request, status, outbox);
    return;
  }
  const proto::PushReply& pushed = reply.envelope.push_reply();
  const proto::ShardState& state =
      request.pushes() ? pushed.state() : reply.envelope.pull_reply().state();
  const std::span<float> values = request.owner->operation.values;
  if (!values.empty() && request.pushes() && !pushed.has_values()) {
    // It says that the push is durable, of an earlier try; that try's answer was lost.
    BackOff(now, request, reply, absl::UnavailableError("received; the values are still missing"));
    request.asks = reply.from() == request.peer;
    return;
  }
  if (!values.empty() &&
      (reply.frames.size() != 1 || reply.frames[0].size() != request.value_bytes())) {
    Finish(now, request,
           absl::InternalError(absl::StrCat("shard ", request.shard.index.value(), " of table ",
                                            request.shard.table.value(), " answered with ",
                                            reply.frames.size(), " frames instead of one of ",
                                            request.value_bytes(), " bytes; report this as a bug")),
           outbox);
    return;
  }
  if (absl::Status useless = CheckAnswer(request, reply, state); !useless.ok()) {
    BackOff(now, request, reply, std::move(useless));
    request.asks = reply.from() == request.peer;
    return;
  }
  if (request.place == Request::Place::kOnWire) {
    Peer& peer = PeerAt(request.peer);
    peer.window.Answered(request.bytes(), reply.envelope.credit_bytes());
    if (request.tries == 1) {
      peer.round_trip.NoteFirst(now - request.first_sent);
    } else {
      peer.round_trip.NoteRepeated(now - request.first_sent, options_.retry_after);
    }
  }
  if (!values.empty()) {
    std::memcpy(values.data() + request.first_element, reply.frames[0].data(),
                request.value_bytes());
  }
  NoteSeen(request, state);
  OperationResult& result = request.owner->result;
  result.version = std::min(result.version, Version(state.version()));
  result.age = std::max(result.age, absl::Milliseconds(state.age_ms()));
  if (request.pushes()) {
    result.staleness = std::max(result.staleness, pushed.staleness());
    result.duplicate = result.duplicate || pushed.duplicate();
    result.discarded = result.discarded || pushed.discarded();
    if (!pushed.durable()) KeepUndurable(now, request, reply.from());
  }
  Finish(now, request, absl::OkStatus(), outbox);
}

absl::Status ClientMachine::CheckAnswer(const Request& request, const Message& reply,
                                        const proto::ShardState& state) {
  if (absl::Status intact = CheckFrameChecksums(reply); !intact.ok()) {
    ++counters_.damaged;
    return intact;
  }
  const bool other_life = state.generation() != 0 && state.generation() != request.generation;
  if (!other_life && Version(state.version()) >= request.seen) return absl::OkStatus();
  ++counters_.outdated_answers;
  return absl::UnavailableError(
      absl::StrCat(view_->NameOf(request.peer.node), " answered with version ", state.version(),
                   " of generation ", state.generation(), "; this client knows of version ",
                   request.seen.value(), " of generation ", request.generation));
}

absl::Duration ClientMachine::RefusedFor(int refusals, const Message& reply) {
  const absl::Duration usual =
      std::min(kRefusedRetryLongest, kRefusedRetryFirst * (1 << std::min(refusals, 10)));
  const absl::Duration asked =
      std::min(kRetryAfterLongest, absl::Milliseconds(reply.envelope.status().retry_after_ms()));
  // Never before the server asked for it, and not all clients at once.
  if (asked > absl::ZeroDuration()) return std::max(usual, asked * (1 + 0.5 * random_.Uniform()));
  return usual * (0.5 + 0.5 * random_.Uniform());
}

void ClientMachine::BackOff(absl::Time now, Request& request, const Message& reply,
                            absl::Status why) {
  if (absl::IsResourceExhausted(why)) {
    ++counters_.refusals;
    if (request.place == Request::Place::kOnWire) {
      PeerAt(request.peer).window.Refused(request.window_number);
    }
  }
  if (absl::IsDataLoss(StatusOf(reply))) ++counters_.damaged;
  // One that waits or backs off already will be sent; the refusal is of an earlier try.
  if (request.place != Request::Place::kOnWire) return;
  Withdraw(request);
  request.last_refusal = std::move(why);
  request.again = now + RefusedFor(request.refusals++, reply);
  next_wake_ = std::min(next_wake_, request.again);
}

void ClientMachine::NoteSeen(const Request& request, const proto::ShardState& state) {
  Seen& seen = seen_[request.shard];
  if (seen.generation != request.generation) seen = {.generation = request.generation};
  const Version version(state.version());
  seen.version = std::max(seen.version, version);
  if (!request.owner->operation.values.empty()) seen.values = version;
}

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
  } else if (IsForNow(status) || absl::IsDeadlineExceeded(status)) {
    // A chain that takes longer than a try may yet make it durable; who refuses it has not got it.
    if (IsForNow(status)) {
      push.asks = false;
      kept_.SetReceived(false, push);
    }
    if (absl::IsResourceExhausted(status)) ++counters_.refusals;
    if (absl::IsDataLoss(status)) ++counters_.damaged;
    kept_.Hasten(now + RefusedFor(push.tries, reply), push);
  } else {
    DropKept(push.request_id,
             absl::DataLossError(absl::StrCat(
                 "push to ", NameOf(push.shard), " had been received, and ",
                 view_->NameOf(push.peer.node), " refuses it now: ", status.message())));
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
    if (lost_.ok()) lost_ = lost;
  }
  if (push.operation == 0) return;
  ActiveOperation& owner = *operations_.at(push.operation);
  --owner.undurable;
  if (!lost.ok() && owner.result.status.ok()) owner.result.status = std::move(lost);
  MarkIfOver(owner);
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
      left = absl::DataLossError(absl::StrCat(
          lost_since_flush_,
          " pushes were lost after a server had received them; the first: ", lost_.message()));
      lost_since_flush_ = 0;
      lost_ = absl::OkStatus();
    }
    over.emplace_back(std::move(flush), std::move(left));
  }
  // They may start operations and flushes.
  for (auto& [flush, status] : over) flush.done(now, status, outbox);
}

}  // namespace covey::client
