// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/etcd/etcd_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/runtime/event_loop.h"

namespace covey::scheduler {
namespace {

constexpr absl::Duration kCampaignEvery = absl::Milliseconds(300);
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

}  // namespace

void EtcdLog::Receive(absl::Time, const Message& message, Outbox& outbox) {
  if (!message.envelope.has_disk_append()) return;
  pending_ = message;
  if (state_ == State::kLeading) return Append(outbox);
  Answer(state_ == State::kLost ? lost_ : absl::AbortedError("this scheduler does not lead"),
         outbox);
}

void EtcdLog::Wake(absl::Time, Outbox& outbox) {
  if (state_ == State::kStandingBy) return Campaign();
  if (state_ != State::kLeading) return;
  if (MonotonicNow() >= store_.next_keep_alive()) {
    const absl::Status status = store_.KeepAlive();
    if (const absl::Status verdict = Verdict(status); !verdict.ok()) return Lose(verdict, outbox);
    ReportLease();
    next_ = status.ok() ? store_.next_keep_alive() : MonotonicNow() + kRetryAfter;
  } else {
    next_ = store_.next_keep_alive();
  }
  if (pending_) Append(outbox);
}

void EtcdLog::Campaign() {
  next_ = MonotonicNow() + kCampaignEvery;
  const absl::StatusOr<std::optional<std::string>> leader = store_.Campaign();
  if (!leader.ok()) return events_.stands_by(std::string(leader.status().message()));
  if (leader->has_value()) {
    return events_.stands_by(absl::StrCat("the leader is at ", **leader));
  }
  absl::StatusOr<std::optional<proto::LogRecord>> record = store_.Recover();
  if (!record.ok()) {
    store_.Resign();
    if (absl::IsDataLoss(record.status())) {
      state_ = State::kLost;
      lost_ = record.status();
      next_ = absl::InfiniteFuture();
      return events_.lost(lost_);
    }
    return events_.stands_by(std::string(record.status().message()));
  }
  state_ = State::kLeading;
  ReportLease();
  next_ = store_.next_keep_alive();
  events_.leads(*std::move(record));
}

void EtcdLog::ReportLease() {
  if (store_.lease_until() == reported_lease_) return;
  reported_lease_ = store_.lease_until();
  events_.leads_until(reported_lease_);
}

void EtcdLog::Append(Outbox& outbox) {
  const absl::Status status = store_.Append(pending_->envelope.disk_append().record());
  ReportLease();
  if (status.ok()) return Answer(status, outbox);
  if (const absl::Status verdict = Verdict(status); !verdict.ok()) return Lose(verdict, outbox);
  LogWarning("append_again", {{"reason", status.message()}});
  next_ = std::min(next_, MonotonicNow() + kRetryAfter);
}

void EtcdLog::Answer(const absl::Status& status, Outbox& outbox) {
  Message reply = MakeReply(*pending_);
  reply.envelope.mutable_disk_durable()->set_index(pending_->envelope.disk_append().index());
  SetStatus(status, reply);
  pending_.reset();
  outbox.Send(std::move(reply));
}

absl::Status EtcdLog::Verdict(const absl::Status& status) const {
  if (status.ok()) return status;
  if (!absl::IsUnavailable(status)) return status;
  if (MonotonicNow() < store_.lease_until()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("this scheduler could not renew its lease of ",
                                             absl::FormatDuration(options_.lease),
                                             " and may not decide any more: ", status.message()));
}

void EtcdLog::Lose(const absl::Status& status, Outbox& outbox) {
  state_ = State::kLost;
  lost_ = status;
  next_ = absl::InfiniteFuture();
  if (pending_) Answer(lost_, outbox);
  events_.lost(lost_);
}

}  // namespace covey::scheduler
