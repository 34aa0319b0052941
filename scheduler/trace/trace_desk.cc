// SPDX-License-Identifier: Apache-2.0
#include "scheduler/trace/trace_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// What one span takes in a report, about.
constexpr size_t kSpanBytes = 40;
constexpr uint32_t kSpansMin = 1000;

}  // namespace

absl::StatusOr<proto::TraceOrder> TraceDesk::Start(absl::Time now,
                                                   const proto::StartTraceRequest& request) {
  const absl::Duration duration = absl::Milliseconds(request.duration_ms());
  if (duration < absl::Milliseconds(1) || duration > kTraceMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace: a duration of ", absl::FormatDuration(duration),
                     "; choose from 1ms to ", absl::FormatDuration(kTraceMax)));
  }
  if (IsUnderWay(now)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "trace: another one is under way, for at most ",
        absl::FormatDuration(absl::Ceil(ends_ - now, absl::Seconds(1))), "; start this one later"));
  }
  TakeOwn(now);
  const auto& nodes = state_.view().nodes();
  const auto alive = std::count_if(nodes.begin(), nodes.end(), [](const proto::Node& node) {
    return node.state() == proto::Node::ALIVE;
  });
  trace_ = std::max(trace_ + 1, static_cast<uint64_t>(absl::ToUnixNanos(now)));
  ends_ = now + duration;
  // The scheduler's own are among them.
  spans_max_ = static_cast<uint32_t>(std::clamp<size_t>(
      kTraceBytesMax / kSpanBytes / static_cast<size_t>(alive + 1), kSpansMin, kTraceSpansMax));
  told_.clear();
  pieces_.clear();
  bytes_ = 0;
  refused_ = 0;
  if (own_ != nullptr) {
    own_->Begin(spans_max_);
    own_is_on_ = true;
  }
  return Order(now);
}

proto::TraceOrder TraceDesk::Order(absl::Time now) const {
  proto::TraceOrder order;
  order.set_trace(trace_);
  order.set_left_ms(static_cast<uint32_t>(
      absl::ToInt64Milliseconds(absl::Ceil(ends_ - now, absl::Milliseconds(1)))));
  order.set_spans_max(spans_max_);
  return order;
}

void TraceDesk::Tell(absl::Time now, NodeId node, proto::HeartbeatReply& reply) {
  reply.set_scheduler_ns(absl::ToUnixNanos(now));
  if (!IsUnderWay(now)) return;
  told_.try_emplace(node);
  *reply.mutable_trace() = Order(now);
}

absl::Status TraceDesk::OnReport(NodeId node, const proto::TraceReportRequest& request) {
  const auto reporter = told_.find(node);
  if (request.trace() != trace_ || reporter == told_.end()) {
    return absl::NotFoundError(
        "report of a trace that this scheduler has not ordered, or not "
        "kept; there is nothing to do");
  }
  // A repeated report has arrived before.
  if (request.piece().number() != reporter->second.next) return absl::OkStatus();
  const size_t bytes = request.piece().ByteSizeLong();
  if (bytes > kTracePieceBytesMax || bytes_ + bytes > kTraceBytesMax) {
    ++refused_;
    reporter->second.is_done = true;
    return absl::ResourceExhaustedError(
        absl::StrCat("report of a trace: ", bytes, " bytes more than the ", bytes_,
                     " that are kept, of ", kTraceBytesMax, "; trace for a shorter time"));
  }
  ++reporter->second.next;
  reporter->second.is_done = request.piece().is_last();
  Keep(node, NameOf(state_.view(), node), request.piece());
  return absl::OkStatus();
}

void TraceDesk::Keep(NodeId node, const std::string& name, proto::TracePiece piece) {
  piece.set_node(node.value());
  piece.set_name(name);
  pieces_.push_back(piece.SerializeAsString());
  bytes_ += pieces_.back().size();
}

void TraceDesk::TakeOwn(absl::Time now) {
  if (!std::exchange(own_is_on_, false)) return;
  proto::ClockRelation clock;
  clock.set_at_ns(absl::ToUnixNanos(now));
  clock.set_error_ns(1);
  for (proto::TracePiece& piece : own_->End(&clock)) {
    Keep(kSchedulerNode, "scheduler", std::move(piece));
  }
}

absl::StatusOr<proto::TraceReply> TraceDesk::Get(absl::Time now,
                                                 const proto::TraceRequest& request) {
  if (trace_ == 0 || request.trace() != trace_) {
    return absl::NotFoundError(
        "trace: this scheduler has no such trace; it keeps the newest one, and forgets it at a "
        "restart");
  }
  if (request.end()) ends_ = std::min(ends_, now);
  proto::TraceReply reply;
  reply.set_is_over(!IsUnderWay(now));
  if (reply.is_over()) TakeOwn(now);
  for (const auto& [node, reporter] : told_) {
    const proto::Node* const known = FindNode(state_.view(), node);
    const bool is_alive = known != nullptr && known->state() == proto::Node::ALIVE;
    if (!reporter.is_done && is_alive) reply.add_missing(node.value());
  }
  size_t bytes = 0;
  size_t next = std::min<size_t>(request.pieces_known(), pieces_.size());
  for (; next < pieces_.size(); ++next) {
    bytes += pieces_[next].size();
    if (bytes > kTraceReplyBytesMax && reply.pieces_size() > 0) break;
    reply.add_pieces()->ParseFromString(pieces_[next]);
  }
  reply.set_has_more(next < pieces_.size());
  reply.set_refused(refused_);
  return reply;
}

}  // namespace covey::scheduler
