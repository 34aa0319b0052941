// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/trace_reporter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

constexpr absl::Duration kRepeatAfter = absl::Seconds(2);
// A scheduler that takes no piece for this duration is not there any more.
constexpr absl::Duration kGiveUpAfter = absl::Seconds(30);

bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

proto::ClockRelation ToProto(const ClockLine& line) {
  proto::ClockRelation clock;
  clock.set_at_ns(absl::ToUnixNanos(line.at));
  clock.set_offset_ns(absl::ToInt64Nanoseconds(line.offset));
  clock.set_drift(line.drift);
  clock.set_error_ns(std::max<int64_t>(absl::ToInt64Nanoseconds(line.error), 1));
  return clock;
}

}  // namespace

void TraceReporter::OnHeartbeatReply(absl::Time sent, absl::Time now,
                                     const proto::HeartbeatReply& reply) {
  if (trace_ == nullptr) return;
  if (reply.scheduler_ns() != 0) {
    clock_.Add(sent, now, absl::FromUnixNanos(reply.scheduler_ns()));
  }
  const proto::TraceOrder& order = reply.trace();
  if (recording_ && order.trace() != newest_) End(now);
  if (order.trace() == 0 || order.trace() == newest_ || order.left_ms() == 0) return;
  pieces_.clear();
  request_id_ = 0;
  again_ = absl::InfiniteFuture();
  newest_ = order.trace();
  recording_ = true;
  ends_ = now + std::min(absl::Milliseconds(order.left_ms()), kTraceMax);
  trace_->Begin(order.spans_max());
}

void TraceReporter::End(absl::Time now) {
  recording_ = false;
  ends_ = absl::InfiniteFuture();
  proto::ClockRelation clock;
  if (const auto line = clock_.line()) clock = ToProto(*line);
  std::vector<proto::TracePiece> pieces = trace_->End(clock.error_ns() > 0 ? &clock : nullptr);
  pieces_.assign(std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
  again_ = now;
  give_up_ = now + kGiveUpAfter;
}

bool TraceReporter::Receive(absl::Time now, const Message& message) {
  if (!message.envelope.has_trace_report_reply()) return false;
  if (pieces_.empty() || request_id_ == 0 ||
      message.envelope.header().request_id() != request_id_) {
    return true;
  }
  const absl::Status status = StatusOf(message);
  if (IsPassing(status)) return true;  // again_ stands
  request_id_ = 0;
  if (status.ok()) {
    pieces_.pop_front();
    give_up_ = now + kGiveUpAfter;
  } else {
    pieces_.clear();
  }
  again_ = pieces_.empty() ? absl::InfiniteFuture() : now;
  return true;
}

void TraceReporter::Wake(absl::Time now, Outbox& outbox) {
  if (recording_ && now >= ends_) End(now);
  if (now < again_) return;
  if (now >= give_up_) {
    pieces_.clear();
    request_id_ = 0;
    again_ = absl::InfiniteFuture();
    return;
  }
  if (request_id_ == 0) request_id_ = next_request_id_++;
  again_ = now + kRepeatAfter;
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.mutable_header()->set_request_id(request_id_);
  proto::TraceReportRequest& report = *message.envelope.mutable_trace_report_request();
  report.set_trace(newest_);
  *report.mutable_piece() = pieces_.front();
  outbox.Send(std::move(message));
}

absl::Time TraceReporter::NextWake() const { return std::min(ends_, again_); }

}  // namespace covey
