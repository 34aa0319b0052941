// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/member.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/base/version.h"
#include "common/cluster/limits.h"
#include "common/cluster/view_change.h"

namespace covey {
namespace {

// Temporary: the scheduler is down, starting, or too busy. The member retries.
bool IsPassing(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

bool IsAnswer(const Message& message, uint64_t request_id) {
  return request_id != 0 && message.envelope.header().request_id() == request_id;
}

}  // namespace

Member::Member(const Options& options, uint64_t& next_request_id)
    : options_(options),
      next_request_id_(next_request_id),
      backoff_({.first = absl::Milliseconds(20), .longest = absl::Seconds(1)},
               Random(options.seed)),
      traces_(options.trace, next_request_id) {
  register_.again = absl::InfinitePast();
}

Member::State Member::state() const {
  const bool knows_itself = state_ != State::kMember || view_->epoch() > Epoch();
  return knows_itself ? state_ : State::kRegistering;
}

absl::Time Member::NextWake() const {
  switch (state_) {
    case State::kRegistering:
      return std::min(register_.again, register_until_);
    case State::kMember:
      return std::min({next_heartbeat_, repeat_heartbeat_, watch_.again, leave_.again, leave_until_,
                       traces_.NextWake()});
    case State::kLeft:
    case State::kFailed:
      return absl::InfiniteFuture();
  }
  return absl::InfiniteFuture();
}

void Member::Wake(absl::Time now, Outbox& outbox) {
  if (state_ == State::kRegistering) {
    if (register_until_ == absl::InfiniteFuture())
      register_until_ = now + options_.register_deadline;
    if (now >= register_until_) {
      const absl::Status why =
          last_refusal_.ok()
              ? absl::UnavailableError(absl::StrCat("scheduler at ", options_.scheduler,
                                                    " does not answer; check that it runs and "
                                                    "that the address is right"))
              : last_refusal_;
      Fail(now,
           Annotate(absl::StrCat("not registered within ",
                                 absl::FormatDuration(options_.register_deadline)),
                    why),
           outbox);
      return;
    }
    if (now >= register_.again) SendRegister(now, outbox);
    return;
  }
  if (state_ != State::kMember) return;
  if (now >= leave_until_) {
    state_ = State::kLeft;
    Changed(now, outbox);
    return;
  }
  if (now >= next_heartbeat_) {
    next_heartbeat_ = now + heartbeat_every_;
    SendHeartbeat(now, now + heartbeat_every_ / 2, outbox);
  } else if (now >= repeat_heartbeat_) {
    SendHeartbeat(now, absl::InfiniteFuture(), outbox);
  }
  if (now >= watch_.again) SendWatch(now, outbox);
  if (now >= leave_.again) SendLeave(now, outbox);
  traces_.Wake(now, outbox);
}

bool Member::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::Envelope& envelope = message.envelope;
  switch (envelope.body_case()) {
    case proto::Envelope::kRegisterReply:
      if (IsAnswer(message, register_.request_id)) ReceiveRegisterReply(now, message, outbox);
      return true;
    case proto::Envelope::kHeartbeatReply:
      ReceiveHeartbeatReply(now, message, outbox);
      return true;
    case proto::Envelope::kWatchViewReply: {
      if (!IsAnswer(message, watch_.request_id)) return true;
      watch_ = {};
      const absl::Status status = StatusOf(message);
      if (status.code() == absl::StatusCode::kAborted) {
        Fail(now, status, outbox);
      } else if (status.ok()) {
        backoff_.Reset();
        TakeNews(now, envelope.watch_view_reply(), outbox);
        if (state_ == State::kMember) SendWatch(now, outbox);
      } else {
        watch_.again = now + backoff_.Next();
      }
      return true;
    }
    case proto::Envelope::kLeaveReply: {
      if (!IsAnswer(message, leave_.request_id) || state_ != State::kMember) return true;
      const absl::Status status = StatusOf(message);
      if (IsPassing(status)) return true;
      if (absl::IsFailedPrecondition(status)) {
        // The scheduler has replied; the newer view is fetched before the request to leave is
        // repeated.
        leave_until_ = now + options_.retry_after;
        SendWatch(now, outbox);
        return true;
      }
      state_ = State::kLeft;
      Changed(now, outbox);
      return true;
    }
    default:
      return traces_.Receive(now, message);
  }
}

void Member::ReceiveHeartbeatReply(absl::Time now, const Message& message, Outbox& outbox) {
  const auto beat = std::find_if(unanswered_beats_.begin(), unanswered_beats_.end(),
                                 [&](const Beat& b) { return IsAnswer(message, b.request_id); });
  if (beat == unanswered_beats_.end()) return;
  // A reply to an older heartbeat does not show whether the newest one arrived.
  if (beat + 1 == unanswered_beats_.end()) repeat_heartbeat_ = absl::InfiniteFuture();
  const absl::Time sent = beat->sent;
  unanswered_beats_.erase(beat);
  const absl::Status status = StatusOf(message);
  const absl::Time from = Planted(PlantedBug::kLeaseFromReply) ? now : sent;
  if (status.ok() && ExtendLease(from, message.envelope.heartbeat_reply().lease_ms())) {
    TakeAway(now, message.envelope.heartbeat_reply());
    probe_order_ = message.envelope.heartbeat_reply().probe();
    if (probes_.order() != probe_order_.order()) probes_.Clear();
    traces_.OnHeartbeatReply(sent, now, message.envelope.heartbeat_reply());
  }
  // A certificate that has ended or was taken back ends its process; another one begins with the
  // new certificate.
  if (absl::IsAborted(status) || absl::IsUnauthenticated(status) ||
      absl::IsPermissionDenied(status)) {
    Fail(now, status, outbox);
  } else if (status.ok() && state_ == State::kMember && watch_.request_id == 0) {
    // The scheduler is back, and no watch is in flight: send one now, not when the back-off is
    // over.
    SendWatch(now, outbox);
  }
}

void Member::ReceiveRegisterReply(absl::Time now, const Message& message, Outbox& outbox) {
  if (state_ != State::kRegistering) return;
  const absl::Time sent = std::exchange(register_, {}).sent;
  last_refusal_ = StatusOf(message);
  // The scheduler may not know yet that the rank's holder is dead.
  if (IsPassing(last_refusal_) || absl::IsAlreadyExists(last_refusal_)) {
    register_.again = now + backoff_.Next();
    return;
  }
  if (!last_refusal_.ok()) {
    Fail(now, last_refusal_, outbox);
    return;
  }
  const proto::RegisterReply& reply = message.envelope.register_reply();
  backoff_.Reset();
  state_ = State::kMember;
  node_ = NodeId(reply.node());
  rank_ = reply.rank();
  heartbeat_every_ = absl::Milliseconds(std::clamp<uint32_t>(reply.heartbeat_ms(), 10, 60000));
  next_heartbeat_ = now + heartbeat_every_;
  ExtendLease(sent, reply.lease_ms());
  const Epoch before = view_->epoch();
  Adopt(now, reply.view(), outbox);
  if (view_->epoch() == before) Changed(now, outbox);
  SendWatch(now, outbox);
}

void Member::TakeNews(absl::Time now, const proto::WatchViewReply& news, Outbox& outbox) {
  if (!news.has_change()) {
    takes_changes_ = true;
    return Adopt(now, news.view(), outbox);
  }
  const Epoch to(news.change().changed().epoch());
  if (to <= view_->epoch()) return;
  auto view = ApplyViewChange(view_->proto(), news.change());
  if (view.ok()) Adopt(now, *std::move(view), outbox);
  takes_changes_ = view_->epoch() == to;
}

void Member::Adopt(absl::Time now, proto::ClusterView view, Outbox& outbox) {
  if (Epoch(view.epoch()) <= view_->epoch()) return;
  if (view.job() != 0 && view.job() != JobFingerprint(options_.job_name)) return;
  auto checked = ClusterView::Make(std::move(view));
  if (!checked.ok()) return;  // A broken view is ignored; the next watch asks again.
  view_ = *std::move(checked);
  Changed(now, outbox);
}

void Member::Leave(absl::Time now, std::string reason, Outbox& outbox) {
  if (state_ != State::kMember) {
    if (state_ == State::kRegistering) state_ = State::kLeft;
    return;
  }
  leave_reason_ = std::move(reason);
  leave_until_ = now + options_.retry_after;
  SendLeave(now, outbox);
}

void Member::Stay() {
  leave_ = {};
  leave_until_ = absl::InfiniteFuture();
}

bool Member::ExtendLease(absl::Time sent, uint32_t lease_ms) {
  if (sent < lease_sent_) return false;
  lease_sent_ = sent;
  lease_until_ = lease_ms == 0 ? absl::InfiniteFuture() : sent + absl::Milliseconds(lease_ms);
  return true;
}

void Member::TakeAway(absl::Time now, const proto::HeartbeatReply& reply) {
  away_.clear();
  for (const proto::AwayWorker& worker : reply.away()) {
    if (away_.size() > kAwayToldMax) return;
    const absl::Duration left = absl::Milliseconds(worker.away().left_ms());
    away_.push_back({.node = NodeId(worker.node()),
                     .reason = worker.away().reason(),
                     .until = now + std::min(left, kAwayMax)});
  }
}

Message Member::Request(absl::Time now, Pending& pending, absl::Time again) const {
  if (pending.request_id == 0) {
    pending.request_id = next_request_id_++;
    pending.sent = now;
  }
  pending.again = again;
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.mutable_header()->set_request_id(pending.request_id);
  message.envelope.mutable_header()->set_epoch(view_->epoch().value());
  return message;
}

void Member::SendRegister(absl::Time now, Outbox& outbox) {
  Message message = Request(now, register_, now + options_.retry_after);
  proto::RegisterRequest& body = *message.envelope.mutable_register_request();
  body.set_job_name(options_.job_name);
  body.set_role(options_.role);
  body.set_rank(options_.rank);
  body.set_labels(options_.labels);
  for (const std::string& endpoint : options_.endpoints) body.add_endpoints(endpoint);
  body.set_process_id(options_.process_id);
  body.set_host(options_.host);
  body.set_data_key(options_.data_key);
  body.set_version(kVersion);
  if (options_.role == proto::SERVER) *body.mutable_load() = load_;
  outbox.Send(std::move(message));
}

void Member::SendHeartbeat(absl::Time now, absl::Time again, Outbox& outbox) {
  Pending beat;
  Message message = Request(now, beat, again);
  repeat_heartbeat_ = again;
  unanswered_beats_.push_back({.request_id = beat.request_id, .sent = beat.sent});
  if (unanswered_beats_.size() > kUnansweredBeatsMax) unanswered_beats_.pop_front();
  proto::HeartbeatRequest& body = *message.envelope.mutable_heartbeat_request();
  if (options_.role == proto::WORKER) *body.mutable_progress() = progress_;
  if (options_.role == proto::SERVER) *body.mutable_load() = load_;
  if (own_away_ && now < own_away_->until) {
    body.mutable_away()->set_reason(own_away_->reason);
    body.mutable_away()->set_left_ms(static_cast<uint32_t>(
        absl::ToInt64Milliseconds(std::min(own_away_->until - now, kAwayMax))));
  }
  if (probes_.order() != 0) *body.mutable_probes() = probes_;
  outbox.Send(std::move(message));
}

void Member::SendWatch(absl::Time now, Outbox& outbox) {
  watch_ = {};
  Message message = Request(now, watch_, now + options_.watch_again_after);
  proto::WatchViewRequest& body = *message.envelope.mutable_watch_view_request();
  body.set_known_epoch(view_->epoch().value());
  body.set_takes_changes(takes_changes_);
  outbox.Send(std::move(message));
}

void Member::SendLeave(absl::Time now, Outbox& outbox) {
  Message message = Request(now, leave_, now + options_.retry_after / 4);
  message.envelope.mutable_leave_request()->set_reason(leave_reason_);
  outbox.Send(std::move(message));
}

void Member::Fail(absl::Time now, absl::Status status, Outbox& outbox) {
  // A leaving member may learn from a view that it has left, before the reply to its request
  // arrives.
  const bool leaving = leave_until_ != absl::InfiniteFuture();
  state_ = leaving ? State::kLeft : State::kFailed;
  if (!leaving) failure_ = std::move(status);
  Changed(now, outbox);
}

void Member::Changed(absl::Time now, Outbox& outbox) {
  if (on_change_) on_change_(now, outbox);
}

}  // namespace covey
