// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rpc/call_table.h"

#include <sched.h>

#include <bit>
#include <utility>

#include "common/base/log.h"
#include "common/security/identity.h"

namespace covey::scheduler {
namespace {

// Requests that the loop takes from the queue before it handles other messages.
constexpr int kRequestsPerTurn = 16;

// Requests that are cheap for the actor and must not wait.
bool IsUrgent(const proto::Envelope& envelope) {
  return envelope.has_heartbeat_request() || envelope.has_leave_request();
}

}  // namespace

absl::Status CallTable::Begin(std::shared_ptr<Call> call, const std::string& peer,
                              Message request) {
  Entry entry{.call = std::move(call),
              .place = {},
              .caller = {.node = request.envelope.header().node(),
                         .incarnation = request.envelope.header().incarnation(),
                         .identity = request.caller == nullptr ? "" : UriOf(*request.caller)}};
  const auto kind = request.envelope.has_watch_view_request() ? Admission::Kind::kWatch
                                                              : Admission::Kind::kRequest;
  if (absl::Status status = admission_.Enter(entry.caller, kind, peer, entry.place); !status.ok()) {
    return status;
  }
  const Admission::Place place = entry.place;
  const bool posted = loop_.Post([this, entry = std::move(entry), request = std::move(request)](
                                     absl::Time now, Outbox& outbox) mutable {
    const uint64_t number = ++last_number_;
    Call& begun = *entry.call;
    begun.number = number;
    calls_[number] = std::move(entry);
    if (IsUrgent(request.envelope)) return Deliver(now, begun, std::move(request), outbox);
    waiting_.push_back({.number = number, .request = std::move(request)});
    if (!PostTurn()) TakeTurn(now, outbox);
  });
  if (posted) return absl::OkStatus();
  admission_.Leave(place);
  return absl::ResourceExhaustedError("the scheduler's queue is full; try again later");
}

bool CallTable::PostTurn() {
  if (turn_is_posted_) return true;
  turn_is_posted_ = loop_.Post([this](absl::Time now, Outbox& outbox) {
    turn_is_posted_ = false;
    TakeTurn(now, outbox);
  });
  return turn_is_posted_;
}

void CallTable::TakeTurn(absl::Time now, Outbox& outbox) {
  do {
    for (int taken = 0; taken < kRequestsPerTurn && !waiting_.empty(); ++taken) {
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      // A caller that has given up since then is skipped.
      const auto at = calls_.find(next.number);
      if (at != calls_.end()) Deliver(now, *at->second.call, std::move(next.request), outbox);
    }
  } while (!waiting_.empty() && !PostTurn());
}

void CallTable::DeliverAgain(const Call& call, const Message& request) {
  waiting_.push_back({.number = call.number, .request = request});
  // Without room in the loop's queue the next call takes the turn.
  PostTurn();
}

void CallTable::End(std::map<uint64_t, Entry>::iterator at) {
  admission_.Leave(at->second.place);
  calls_.erase(at);
}

void CallTable::Continue(std::shared_ptr<Call> call,
                         std::function<bool(absl::Time, Outbox&)> work) {
  Post([this, call = std::move(call), work = std::move(work)](absl::Time now, Outbox& outbox) {
    if (!calls_.contains(call->number) || !work(now, outbox)) return;
    if (const auto at = calls_.find(call->number); at != calls_.end()) End(at);
  });
}

void CallTable::CountMalformed() {
  Post([this](absl::Time, Outbox&) {
    if (std::has_single_bit(++malformed_)) {
      LogWarning("malformed_request", {{"plane", "control"}, {"count", malformed_}});
    }
  });
}

void CallTable::Close() {
  Post([this](absl::Time, Outbox&) { closing_ = true; });
}

void CallTable::Deliver(absl::Time now, const Call& call, Message request, Outbox& outbox) {
  request.connection = call.number;
  actor_.Receive(now, request, outbox);
}

void CallTable::SendReply(const Message& reply) {
  const auto at = calls_.find(reply.connection);
  if (at == calls_.end()) return;
  Admission::Caller caller = at->second.caller;
  if (reply.envelope.has_register_reply()) caller.node = reply.envelope.register_reply().node();
  if (caller.node != 0 && leads()) {
    const absl::StatusCode code = StatusOf(reply).code();
    if (code == absl::StatusCode::kOk) admission_.MarkTrusted(caller);
    if (code == absl::StatusCode::kAborted) admission_.MarkUntrusted(caller);
  }
  if (at->second.call->SendReply(reply)) End(at);
}

void CallTable::ReportLost(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::Header& watcher = request.envelope.header();
  if (closing_ || watcher.node() == 0) return;
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.set_from_loop(kProbeLoop);
  message.envelope.mutable_header()->set_node(kSchedulerNode.value());
  proto::ConnectionLost& body = *message.envelope.mutable_connection_lost();
  body.set_node(watcher.node());
  body.set_incarnation(watcher.incarnation());
  actor_.Receive(now, message, outbox);
}

void CallTable::Post(const std::function<void(absl::Time, Outbox&)>& work) {
  while (!loop_.Post(work)) sched_yield();
}

}  // namespace covey::scheduler
