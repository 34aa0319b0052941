#include "scheduler/call_table.h"

#include <sched.h>

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace covey::scheduler {
namespace {

// Requests that the loop takes from the line before it looks at what else has arrived.
constexpr int kRequestsPerTurn = 16;

// What costs the actor little and must not wait.
bool IsUrgent(const proto::Envelope& envelope) {
  return envelope.has_heartbeat_request() || envelope.has_leave_request();
}

}  // namespace

bool CallTable::Begin(std::shared_ptr<Call> call, std::string peer, Message request) {
  return loop_.Post([this, call = std::move(call), peer = std::move(peer),
                     request = std::move(request)](absl::Time now, Outbox& outbox) mutable {
    if (const absl::Status status = Admit(peer, request); !status.ok()) {
      return Refuse(*call, request, status);
    }
    const uint64_t node = request.envelope.header().node();
    const uint64_t number = ++last_number_;
    call->number = number;
    calls_[number] = {.call = call, .node = node};
    ++calls_of_[node];
    if (IsUrgent(request.envelope)) return Ask(now, *call, std::move(request), outbox);
    ++waiting_of_[peer];
    waiting_.push_back({.number = number, .peer = std::move(peer), .request = std::move(request)});
    if (waiting_.size() == 1) PostTurn(now, outbox);
  });
}

absl::Status CallTable::Admit(const std::string& peer, const Message& request) const {
  const uint64_t node = request.envelope.header().node();
  const auto calls = calls_of_.find(node);
  const size_t under_way = calls == calls_of_.end() ? 0 : calls->second;
  if (under_way >= (node == 0 ? kCallsOfStrangersMax : kCallsPerNodeMax)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        under_way, " calls of ", node == 0 ? "callers that are no node" : "this node",
        " are under way already; wait for the answers to earlier ones, then try again"));
  }
  if (IsUrgent(request.envelope)) return absl::OkStatus();
  const auto waiting = waiting_of_.find(peer);
  if (waiting_.size() >= kWaitingMax ||
      (waiting != waiting_of_.end() && waiting->second >= kWaitingPerPeerMax)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        waiting_.size(), " requests wait for the scheduler already, ",
        waiting == waiting_of_.end() ? 0 : waiting->second, " of ", peer, "; try again later"));
  }
  return absl::OkStatus();
}

void CallTable::Refuse(Call& call, const Message& request, const absl::Status& status) {
  if (std::has_single_bit(++refused_)) {
    LogWarning("call_refused", {{"count", refused_}, {"reason", status.message()}});
  }
  Message reply = MakeReply(request);
  SetStatus(status, reply);
  call.Answer(reply);
}

void CallTable::PostTurn(absl::Time now, Outbox& outbox) {
  const auto turn = [this](absl::Time at, Outbox& to) { TakeTurn(at, to); };
  if (!loop_.Post(turn)) TakeTurn(now, outbox);
}

void CallTable::TakeTurn(absl::Time now, Outbox& outbox) {
  for (int taken = 0; taken < kRequestsPerTurn && !waiting_.empty(); ++taken) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto at = waiting_of_.find(next.peer); --at->second == 0) waiting_of_.erase(at);
    // Who gave up meanwhile is not asked for.
    const auto at = calls_.find(next.number);
    if (at != calls_.end()) Ask(now, *at->second.call, std::move(next.request), outbox);
  }
  if (!waiting_.empty()) PostTurn(now, outbox);
}

void CallTable::End(std::map<uint64_t, Entry>::iterator at) {
  if (const auto of = calls_of_.find(at->second.node); --of->second == 0) calls_of_.erase(of);
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

void CallTable::Ask(absl::Time now, const Call& call, Message request, Outbox& outbox) {
  request.connection = call.number;
  actor_.Receive(now, request, outbox);
}

void CallTable::Answer(const Message& reply) {
  const auto at = calls_.find(reply.connection);
  if (at != calls_.end() && at->second.call->Answer(reply)) End(at);
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
