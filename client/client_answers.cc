#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/client_machine.h"
#include "client/client_request.h"
#include "common/net/frame_checksum.h"

namespace covey::client {
namespace {

constexpr absl::Duration kRefusedRetryLongest = absl::Milliseconds(200);
constexpr absl::Duration kRefusedRetryFirst = absl::Milliseconds(2);
// Whatever a server says, its clients look in again.
constexpr absl::Duration kRetryAfterLongest = absl::Seconds(10);

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

}  // namespace covey::client
